"""The methods of the control socket, one file for each thing a client may ask about."""
