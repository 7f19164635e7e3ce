"""Shipped fakes: a scripted model server, and a daemon that stops where a test wants it to."""
