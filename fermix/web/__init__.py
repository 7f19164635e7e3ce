"""What fermix says over HTTP."""
