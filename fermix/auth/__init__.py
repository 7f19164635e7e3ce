"""Who may come in over HTTP: the local programs' token and the named tokens of devices."""
