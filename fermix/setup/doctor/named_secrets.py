"""The secrets that config.toml names: each is somewhere."""

from __future__ import annotations

from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("secrets")


def look(scene: Scene) -> list[Finding]:
    """Names without a secret, and secrets that may not be read."""
    home = scene.home
    problems = scene.problems()
    missing = [
        TOPIC.fail(each.message, each.hint)
        for each in problems
        if each.code == "secret_missing"
        or (each.code == "home_unsafe" and str(home.secrets) in each.message)
    ]
    if missing:
        return missing
    if problems:
        return [
            TOPIC.skipped("Not every name can be read before config.toml is repaired.", problems[0].hint)
        ]
    return [TOPIC.ok("Every secret named in config.toml is found.")]
