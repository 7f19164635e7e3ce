"""Vendors: one file each, listed in `providers.build`, and what the local one is made of."""
