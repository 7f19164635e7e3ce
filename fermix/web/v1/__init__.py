"""The OpenAI-compatible interface: any program that speaks it can talk to fermix."""
