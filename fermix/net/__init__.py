"""Outgoing HTTP through two doors: what the owner wrote, and what anyone else named.

Nothing is imported here: settings use `net.address`, and that must not load gevent.
"""
