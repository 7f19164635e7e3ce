"""What fermix starts: the local model's runtime and file, and programs that commands use."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from fermix.providers.local_files import is_available
from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("helpers")
_GGUF = b"GGUF"
"""Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, the first four bytes"""
_NEEDED = {"sh": "no command can run", "git": "commands cannot work with repositories"}
"""Program -> what is lost without it."""


def look(scene: Scene) -> list[Finding]:
    """Whether they are there."""
    findings = [*_model(scene), *_programs(scene)]
    return findings or [TOPIC.ok(_well(scene))]


def _well(scene: Scene) -> str:
    model = "the built-in model, " if is_available(scene.environment) else ""
    return f"There are {model}{', '.join(_NEEDED)}."


def _model(scene: Scene) -> list[Finding]:
    wanted = scene.wanted()
    if wanted is None:
        return []
    if wanted.model_file is not None:
        return _file(Path(wanted.model_file))
    if wanted.provider == "local" and not is_available(scene.environment):
        return [
            TOPIC.warn(
                "This fermix carries no built-in model; without an Ollama on this machine nobody answers.",
                "fermix setup",
            )
        ]
    return []


def _file(path: Path) -> list[Finding]:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF))
    except OSError as error:
        return [
            TOPIC.fail(f"The model file '{path}' cannot be read: {error.strerror}.", "fermix models list")
        ]
    if magic != _GGUF:
        told = f"'{path}' is no model file: it begins with {magic!r}, expected {_GGUF!r}."
        return [TOPIC.fail(told, f"ls -l {shlex.quote(str(path))}; fermix models list")]
    return []


def _programs(scene: Scene) -> list[Finding]:
    path = scene.environment.get("PATH", "")
    return [
        TOPIC.warn(
            f"There is no '{name}' on PATH ({path}): {lost}.", f"sudo apt-get install {_package(name)}"
        )
        for name, lost in _NEEDED.items()
        if shutil.which(name, path=path) is None
    ]


def _package(name: str) -> str:
    return {"sh": "dash"}.get(name, name)
