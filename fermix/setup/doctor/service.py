"""The service: its unit starts this very fermix on this very home."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("service")


def look(scene: Scene) -> list[Finding]:
    """Drift between the installed unit and what would be installed now."""
    texts = unit_texts(scene)
    if not texts:
        return [TOPIC.skipped("No service is installed.", "fermix service install")]
    findings = []
    for path, text in texts.items():
        program = _program(text)
        if program is None:
            findings.append(TOPIC.fail(f"'{path}' starts nothing.", "fermix service install"))
        elif not Path(program).exists():
            findings.append(
                TOPIC.fail(f"'{path}' starts '{program}', which is not there.", "fermix service install")
            )
        elif Path(program).resolve() != Path(scene.command[0]).resolve():
            findings.append(
                TOPIC.warn(
                    f"'{path}' starts '{program}'; this fermix is '{scene.command[0]}'.",
                    "fermix service install",
                )
            )
    return findings or [TOPIC.ok(f"'{next(iter(texts))}' starts this fermix.")]


def unit_texts(scene: Scene) -> dict[Path, str]:
    """The installed units, by path."""
    config = scene.environment.get("XDG_CONFIG_HOME") or str(
        Path(scene.environment.get("HOME") or "~").expanduser() / ".config"
    )
    texts = {}
    for folder in (Path(config) / "systemd/user", Path("/etc/systemd/system")):
        with suppress(OSError):
            path = folder / "fermix.service"
            texts[path] = path.read_text("utf-8", "replace")
    return texts


def _program(text: str) -> str | None:
    """The first word of ExecStart."""
    for line in text.splitlines():
        if line.startswith("ExecStart="):
            with suppress(ValueError):
                words = shlex.split(line.removeprefix("ExecStart="))
                return words[0].lstrip("-@:+!") if words else None
    return None
