"""Ways people reach fermix; each is a folder of its own and one row in this table."""

CHANNELS = {"local": "fermix.channels.local:LocalChannel"}
"""Channel name → where its class is; `daemon.parts` makes them."""
