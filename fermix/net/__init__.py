"""Outgoing HTTP through two doors: what the owner wrote, and what anyone else named."""

from fermix.net.door import OwnerDoor, warm
from fermix.net.response import Response

__all__ = ["OwnerDoor", "Response", "warm"]
