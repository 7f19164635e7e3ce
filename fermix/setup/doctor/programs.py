"""What fermix starts: the local model's runtime and file, and programs that commands use."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from fermix.errors import ModelUnusable
from fermix.providers.catalog import BUILT_IN, local_models
from fermix.providers.gguf import check_whole
from fermix.providers.local_files import is_available
from fermix.setup.doctor.finding import Finding, Topic
from fermix.setup.doctor.scene import Scene

TOPIC = Topic("helpers")
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
    """The model on this machine that the settings name, or the built-in one."""
    wanted = scene.wanted()
    if wanted is None or wanted.provider != "local":
        return []
    files = local_models(scene.home, scene.environment)
    if wanted.model is None:
        return [] if BUILT_IN in files else [TOPIC.warn(_NO_MODEL, "fermix setup")]
    if wanted.model not in files:
        instead = "the built-in one" if BUILT_IN in files else "nobody"
        told = (
            f"The model {wanted.model!r} is no file '{scene.home.models / wanted.model}.gguf': unless an "
            f"Ollama on this machine has it, {instead} answers."
        )
        return [TOPIC.warn(told, "fermix models list")]
    path = files[wanted.model]
    return [] if path is None else _file(path)


_NO_MODEL = "This fermix carries no built-in model; unless an Ollama runs on this machine, nobody answers."


def _file(path: Path) -> list[Finding]:
    """Its head is followed to the last tensor. Raises: OSError, which the run tells."""
    try:
        check_whole(path, path.stem)
    except ModelUnusable as error:
        return [
            TOPIC.fail(
                f"'{path}': {error.message}", f"fermix models remove {shlex.quote(path.stem)} --force"
            )
        ]
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
