"""The tables of the README that the program itself knows: `python3 -m tests --fix` writes them."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
README = CHECKOUT / "README.md"


def main(fix: bool = True) -> int:
    """Rewrite every table that is not current, or with `fix` False only name them; 0 when all are."""
    text = README.read_text()
    stale = [name for name in SECTIONS if written(text, name) != render(name)]
    if fix:
        for name in stale:
            before, _, after = text.partition(written(text, name) + f"<!-- /{name} -->")
            text = f"{before}{render(name)}<!-- /{name} -->{after}"
        README.write_text(text)
        return 0
    for name in stale:
        print(f"README.md: the table '{name}' is not current; run: python3 -m tests --fix")
    return 1 if stale else 0


def written(text: str, name: str) -> str:
    """What stands between a table's markers.

    Raises: LookupError when the markers are missing.
    """
    found = _marked(name).search(text)
    if found is None:
        raise LookupError(f"README.md has no markers <!-- {name} --> and <!-- /{name} -->")
    return found[2]


def render(name: str) -> str:
    """What should stand there."""
    return f"\n{SECTIONS[name]()}\n"


def commands() -> str:
    """Every command, those of groups too, with the first sentence of its help."""
    import click

    from fermix.cli.main import COMMANDS, root

    def rows() -> Iterator[tuple[str, str]]:
        context = click.Context(root)
        for name in COMMANDS:
            command = root.get_command(context, name)
            assert command is not None
            yield f"`fermix {name}`", _first_sentence(command.help)
            if isinstance(command, click.Group):
                for inner, each in sorted(command.commands.items()):
                    yield f"`fermix {name} {inner}`", _first_sentence(each.help)

    return _table(("Command", "What it does"), rows())


def settings() -> str:
    """Every setting with its default, unit, what makes a change count, and help."""
    from fermix.config import values
    from fermix.daemon.sections import SCHEMA

    def rows() -> Iterator[tuple[str, ...]]:
        for section in SCHEMA.sections:
            table = f"{section.name}.NAME" if section.is_named else section.name
            for each in section.settings:
                default = "" if each.default is None else f"`{values.written(each.default)}`"
                after = "restart" if each.needs_restart else "reload"
                yield f"`{table}.{each.name}`", default, each.unit or "", after, each.help

    return _table(("Setting", "Default", "Unit", "Counts after", "What it does"), rows())


def error_codes() -> str:
    """Every stable code with its exit status and meaning."""
    rows = (
        (f"`{each.code}`", str(each.exit_status), each.meaning)
        for each in sorted(errors(), key=lambda error: error.code)
    )
    refusals = ", ".join(f"`{code}`" for code in sorted(socket_codes()))
    return (
        _table(("Code", "Exit status", "Meaning"), rows)
        + f"\n\nThe control socket also refuses with: {refusals}."
    )


def adapters() -> str:
    """Channels, providers, wire APIs and tools, each from its own table."""
    from fermix.channels import CHANNELS
    from fermix.providers.build import APIS, VENDORS
    from fermix.tools import TOOLS

    def rows() -> Iterator[tuple[str, ...]]:
        for kind, table in (("channel", CHANNELS), ("provider", VENDORS), ("wire API", APIS)):
            for name, place in table.items():
                module = importlib.import_module(place.partition(":")[0])
                yield kind, f"`{name}`", _first_sentence(module.__doc__)
        for tool in TOOLS:
            yield f"tool ({tool.policy})", f"`{tool.name}`", _first_sentence(tool.description)

    return _table(("Kind", "Name", "What it is"), rows())


def layers() -> str:
    """The rows of the layer contract, each package with its purpose."""
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    rows = next(each["layers"] for each in contracts if each["type"] == "layers")

    def lines() -> Iterator[tuple[str, ...]]:
        for number, row in enumerate(rows, start=1):
            names = [name.strip() for name in row.split("|") if not name.strip().startswith("(")]
            for name in names:
                yield str(number), f"`{name}`", _purpose(name)

    return _table(("Row", "Package", "Purpose"), lines())


def peer() -> str:
    """The figures kept by `python3 -m tests.bench --peer --write`; nothing is measured here."""
    from tests.bench.peer.figures import load, markdown

    return markdown(load())


SECTIONS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "settings": settings,
    "error-codes": error_codes,
    "adapters": adapters,
    "layers": layers,
    "peer": peer,
}


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """One class of the error tree, read from its source."""

    name: str
    code: str
    exit_status: int
    meaning: str


def errors() -> list[ErrorClass]:
    """Every error class that has a code of its own, base classes first."""
    found: dict[str, ErrorClass] = {}
    waiting = [node for tree in _trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    known = {"FermixError": ("", 1)}
    while True:
        ready = [node for node in waiting if node.name == "FermixError" or _bases(node) & known.keys()]
        if not ready:
            return list(found.values())
        for node in ready:
            waiting.remove(node)
            parent = next(iter(_bases(node) & known.keys()), "FermixError")
            own = _assigned(node)
            status = own.get("exit_status", known[parent][1])
            assert isinstance(status, int)
            known[node.name] = ("", status)
            if "code" in own:
                meaning = _first_sentence(ast.get_docstring(node))
                found[node.name] = ErrorClass(node.name, str(own["code"]), status, meaning)


def socket_codes() -> set[str]:
    """The codes given to `ProtocolError(..., code=...)`."""
    calls = (node for tree in _trees() for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {
        str(keyword.value.value)
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "ProtocolError"
        for keyword in call.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    }


def _trees() -> Iterator[ast.Module]:
    for path in sorted((CHECKOUT / "fermix").rglob("*.py")):
        yield ast.parse(path.read_text())


def _bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def _assigned(node: ast.ClassDef) -> dict[str, object]:
    return {
        target.id: statement.value.value
        for statement in node.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _purpose(package: str) -> str:
    for path in (CHECKOUT / f"fermix/{package}/__init__.py", CHECKOUT / f"fermix/{package}.py"):
        if path.exists():
            return _first_sentence(ast.get_docstring(ast.parse(path.read_text())))
    return ""


def _first_sentence(text: str | None) -> str:
    paragraph = " ".join((text or "").strip().partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _marked(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->)(.*?)(<!-- /{name} -->)", re.DOTALL)


if __name__ == "__main__":
    sys.exit(main(fix="--check" not in sys.argv))
