"""Settings: declared once with default, help and unit; read, checked and written in one place."""

from __future__ import annotations

from fermix.config.declare import section, setting

__all__ = ["section", "setting"]
