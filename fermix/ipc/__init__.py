"""The control socket: frames, addresses, and both ends of the conversation."""
