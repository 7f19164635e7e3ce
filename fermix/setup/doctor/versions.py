"""One fermix everywhere: this program, the daemon that runs, and what the shell finds."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("versions")
TIMEOUT_S = 10.0


def look(scene: Scene) -> list[Finding]:
    """Compares their versions."""
    findings = []
    running = scene.status.get("version") if scene.status is not None else None
    if running is not None and running != scene.version:
        findings.append(
            TOPIC.warn(
                f"The daemon that runs is version {running}, this program is {scene.version}.",
                "fermix restart",
            )
        )
    found = shutil.which("fermix", path=scene.environment.get("PATH", ""))
    if found is not None and not _is_this(found, scene.command[0]):
        said = _version_of(found, scene)
        if said != f"fermix {scene.version}":
            findings.append(
                TOPIC.warn(
                    f"The shell finds '{found}', which says {said!r}; this one is fermix {scene.version}.",
                    f"type -a fermix; ls -l {shlex.quote(found)}",
                )
            )
    return findings or [TOPIC.ok(f"fermix {scene.version} everywhere.")]


def _is_this(found: str, own: str) -> bool:
    """A checkout's script stands beside the interpreter that runs it."""
    there, here = Path(found).resolve(), Path(own).resolve()
    return there == here or Path(found).parent.resolve() == Path(own).parent.resolve()


def _version_of(program: str, scene: Scene) -> str:
    """The first line it answers, or why there is none."""
    environment = {name: scene.environment[name] for name in ("HOME", "PATH") if name in scene.environment}
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"nothing within {TIMEOUT_S:g} s"
    except OSError as error:
        return f"cannot be run: {error.strerror}"
    return done.stdout.decode("utf-8", "replace").strip().partition("\n")[0][:80]
