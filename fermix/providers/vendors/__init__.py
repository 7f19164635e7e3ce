"""Vendors: one file each, listed in `providers.build`."""
