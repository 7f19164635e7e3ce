"""Signing in at a vendor: a browser or a code once, then tokens that are renewed behind the scenes."""
