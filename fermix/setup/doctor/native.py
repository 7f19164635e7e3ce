"""The compiled module: there, or its slower stand-in."""

from __future__ import annotations

from fermix import native
from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("native")


def look(scene: Scene) -> list[Finding]:
    """Whether commands are watched by the compiled monitor."""
    if native.NOTICE is None:
        return [TOPIC.ok("The native module is compiled.")]
    said, _, command = native.NOTICE.partition(" Build it with: ")
    return [TOPIC.warn(said, command or None)]
