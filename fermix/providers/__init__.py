"""Models behind one port: wire APIs, vendors, and the helper that runs the local model.

Nothing is imported here: the offline client reads `providers.settings` and must stay light.
"""
