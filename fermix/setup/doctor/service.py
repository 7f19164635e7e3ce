"""The service: its unit starts this very fermix on this very home."""

from __future__ import annotations

from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("service")


def look(scene: Scene) -> list[Finding]:
    """Drift between the installed unit and what would be installed now."""
    return [TOPIC.skipped("No service is installed.", "fermix service install")]
