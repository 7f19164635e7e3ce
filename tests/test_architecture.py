"""The house holds: layers, sizes, names, docstrings, error codes, and a README that tells the truth."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermix.config.declare import Kind
from fermix.daemon.sections import SCHEMA
from tests import readme

CHECKOUT = Path(__file__).resolve().parent.parent
TOOLS = Path(sys.executable).parent
FILE_LIMIT = 600
FUNCTION_LIMIT = 60
FORBIDDEN_NAMES = {"utils", "util", "helpers", "common", "core", "misc"}
WITHOUT_UNIT = {"http.port"}


def sources(*folders: str) -> list[Path]:
    """Our own program text below these folders."""
    found = (path for folder in folders for path in (CHECKOUT / folder).rglob("*"))
    return sorted(path for path in found if path.suffix in (".py", ".pyx", ".c", ".h"))


def shown(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


@pytest.mark.parametrize("name", readme.SECTIONS)
def test_readme_section_is_current(name: str) -> None:
    written = readme.written(readme.README.read_text(), name)

    assert written == readme.render(name), "run: python3 -m tests --fix"


def test_error_codes_are_unique() -> None:
    counted = Counter(error.code for error in readme.errors())

    assert [code for code, times in counted.items() if times > 1] == []


def test_no_file_is_too_long() -> None:
    lengths = {
        shown(path): len(path.read_text().splitlines()) for path in sources("fermix", "native", "tests")
    }

    assert {path: length for path, length in lengths.items() if length > FILE_LIMIT} == {}


def test_no_function_is_too_long() -> None:
    lengths = {
        f"{shown(path)}:{name}": length
        for path in sources("fermix", "native", "tests")
        for name, length in functions(path)
    }

    assert {name: length for name, length in lengths.items() if length > FUNCTION_LIMIT} == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        shown(path) for path in sources("fermix", "tests") if path.suffix == ".py" and is_silent(path)
    ]

    assert silent == []


def test_no_package_is_a_place_for_everything() -> None:
    placed = {
        shown(path): path.stem if path.is_file() else path.name for path in (CHECKOUT / "fermix").rglob("*")
    }

    assert [path for path, name in placed.items() if name in FORBIDDEN_NAMES] == []


def test_every_setting_explains_itself() -> None:
    names = {each.name: ["NAME"] for each in SCHEMA.sections if each.is_named}
    for located in SCHEMA.keys(names):
        setting = located.setting
        assert re.fullmatch(r"[A-Z].*\.", setting.help), f"{located.key}: the help is one sentence"
        is_number = setting.kind in (Kind.INTEGER, Kind.NUMBER)
        assert setting.unit or not is_number or located.key in WITHOUT_UNIT, (
            f"{located.key}: a number of what?"
        )


def test_every_default_is_a_value_its_own_setting_accepts() -> None:
    from fermix.config import values

    names = {each.name: ["NAME"] for each in SCHEMA.sections if each.is_named}
    for located in SCHEMA.keys(names):
        default = located.setting.default
        if default is not None:
            decoded = values.decode(
                located.setting, values.plain(default), key=located.key, place=lambda: "", user_home="/"
            )
            assert decoded == default, located.key


VIOLATIONS = {
    "fermix/agent/loop.py": "from fermix.tools import shell as _shell\n",
    "fermix/utils/__init__.py": '"""A place for everything."""\n',
    "fermix/channels/other/__init__.py": "from fermix.channels import local as _local\n",
    "fermix/gateway/first.py": "from fermix.gateway.below import second as _second\n",
    "fermix/gateway/below/__init__.py": "",
    "fermix/gateway/below/second.py": "from fermix.gateway import first as _first\n",
}
"""File -> line added to it: what the contract must catch by name."""


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the layer contract says of a copy of this house with every violation in it."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copytree(
        CHECKOUT / "fermix", copy / "fermix", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    shutil.copy(CHECKOUT / "pyproject.toml", copy)
    for name, line in VIOLATIONS.items():
        path = copy / name
        path.parent.mkdir(exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + line)
    done = subprocess.run(
        [TOOLS / "lint-imports", "--no-cache"],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return re.sub(r"\s+", " ", done.stdout)


@pytest.mark.parametrize(
    "told",
    [
        "fermix.agent.loop -> fermix.tools",
        "fermix.utils",
        "fermix.channels.other -> fermix.channels.local",
        "No cycles are allowed in fermix.gateway",
    ],
)
def test_the_layer_contract_names_every_violation(verdict: str, told: str) -> None:
    assert told in verdict


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("fermix/agent/stray.py", "import flask"),
        ("fermix/gateway/stray.py", "import click"),
        ("fermix/tasks/stray.py", "from gevent import monkey"),
    ],
)
def test_a_library_outside_its_package_is_named(place: str, line: str) -> None:
    done = subprocess.run(
        [TOOLS / "ruff", "check", "--select", "TID251", "--stdin-filename", place, "-"],
        input=f"{line}\n",
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "TID251" in done.stdout


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name and number of lines of every function in a file."""
    text = path.read_text()
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1
    elif path.suffix in (".c", ".h"):
        for found in re.finditer(r"^\w[^\n;]*\)\s*\{\n.*?^\}", text, re.MULTILINE | re.DOTALL):
            yield found[0].partition("(")[0].split()[-1], found[0].count("\n") + 1
    else:
        for found in re.finditer(r"^(?:c?p?def)\b[^\n]*\n(?:[ \t)][^\n]*\n|\n)*", text, re.MULTILINE):
            yield found[0].partition("(")[0].split()[-1], found[0].rstrip().count("\n") + 1


def is_silent(path: Path) -> bool:
    """Whether a module has no docstring; an empty one in tests needs none."""
    text = path.read_text()
    if not text and path.parts[len(CHECKOUT.parts)] == "tests":
        return False
    return not ast.get_docstring(ast.parse(text))
