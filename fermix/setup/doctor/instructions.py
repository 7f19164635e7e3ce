"""The owner's files of instructions: each can be read and is short enough to be given to a model."""

from __future__ import annotations

from fermix.agent import bootstrap
from fermix.setup.doctor.finding import Finding, Topic, quoted
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("instructions")


def look(scene: Scene) -> list[Finding]:
    """What of the files does not reach a model as it stands."""
    folder = scene.home.bootstrap
    if not folder.is_dir():
        return [TOPIC.skipped(f"There is no '{folder}' yet; the first start makes it.", "fermix start")]
    problems = bootstrap.read(folder).problems
    if problems:
        return [TOPIC.warn(problem, f"ls -l {quoted(folder)}") for problem in problems]
    return [TOPIC.ok(f"The files in '{folder}' reach the model.")]
