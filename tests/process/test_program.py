"""How fermix starts itself again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from fermix import __version__
from fermix.process.program import own_command, own_variables


def test_started_again_from_another_folder_it_is_the_same_fermix(tmp_path: Path) -> None:
    source = {name: text for name, text in os.environ.items() if name != "FERMIX_EXE"}

    done = subprocess.run(
        [*own_command(source), "version"],
        env={**source, **own_variables(source)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert done.stdout == f"fermix {__version__}\n"


def test_checkout_comes_before_what_is_on_the_path_already() -> None:
    first, *rest = own_variables({"PYTHONPATH": "/a:/b"})["PYTHONPATH"].split(":")

    assert (Path(first) / "fermix" / "__init__.py").is_file()
    assert rest == ["/a", "/b"]


def test_frozen_fermix_is_started_by_its_launcher_and_needs_nothing_else() -> None:
    environment = {"FERMIX_EXE": "/opt/fermix", "PYTHONPATH": "/a"}

    assert own_command(environment) == ("/opt/fermix",)
    assert own_variables(environment) == {}
