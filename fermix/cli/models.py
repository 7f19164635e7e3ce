"""`fermix models`: which models could answer, and files that are added; no daemon is asked."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from pathlib import Path

import click

from fermix.cli.completing import model_files
from fermix.cli.config import apply_edits
from fermix.cli.options import Group, examples, json_option, own_home, print_json
from fermix.cli.progress import ProgressBar, size_text
from fermix.cli.setup_apply import apply_to_running
from fermix.cli.terminal import one_line, say
from fermix.config.edits import Edit
from fermix.config.home import prepare_home
from fermix.daemon.sections import Settings, load_settings
from fermix.errors import OwnerError, UsageError
from fermix.providers.catalog import BUILT_IN, ModelFact, list_models, local_models
from fermix.providers.limits import FREE, Price
from fermix.providers.local_files import is_available
from fermix.providers.model_store import ModelStore, Unfinished, explain, unknown
from fermix.providers.settings import LOCAL

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SHA256 = re.compile(r"[0-9A-Fa-f]{64}")


@click.group(
    cls=Group,
    epilog=examples(
        "fermix models list",
        "fermix models add ~/Downloads/qwen3-4b.gguf",
        "fermix models use qwen3-4b",
    ),
)
def group() -> None:
    """See which models could answer, add some, choose one."""


@group.command("list", epilog=examples("fermix models list", "fermix models list --json"))
@json_option
def list_all(as_json: bool) -> None:
    """List the models of this machine and of the configured providers.

    With the window and the price of a million tokens, where they are known.
    """
    home = own_home()
    facts = list_models(load_settings(home, os.environ), home, os.environ)
    unfinished = ModelStore(home).unfinished()
    if as_json:
        told = [dataclasses.asdict(each) for each in unfinished]
        print_json({"models": [dataclasses.asdict(fact) for fact in facts], "unfinished": told})
        return
    if not facts:
        print("No models. Name a provider with: fermix config set providers.NAME.base_url https://HOST/v1")
    rows = [*map(_row, facts), *map(_unfinished_row, unfinished)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for each in unfinished:
        say(f"To go on: fermix models add {shlex.quote(one_line(each.url, 300))} --name {each.name}")


@group.command(
    epilog=examples(
        "fermix models add ~/Downloads/qwen3-4b.gguf",
        "fermix models add https://HOST/PATH/qwen3-4b.gguf --name qwen --sha256 0f343b0931…",
    )
)
@click.argument("source", metavar="FILE|URL", type=click.Path())
@click.option("--name", metavar="NAME", help="What to call it; the file's own name when left out.")
@click.option("--sha256", metavar="HASH", help="Refuse the file unless it has this SHA-256.")
@json_option
def add(source: str, name: str | None, sha256: str | None, as_json: bool) -> None:
    """Put a GGUF file into the home, where the local provider finds it.

    A download that was interrupted goes on where it was when the command is given again.
    """
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise UsageError(f"{sha256!r} is no SHA-256; expected 64 hexadecimal digits.")
    home = own_home()
    prepare_home(home)
    path = (
        _download(ModelStore(home), source, name, sha256, is_silent=as_json)
        if _URL.match(source)
        else _copy(ModelStore(home), Path(source).expanduser(), name, sha256, is_silent=as_json)
    )
    size = path.stat().st_size
    if as_json:
        print_json({"name": path.stem, "path": str(path), "size_bytes": size})
    else:
        print(f"{path.stem} is there ({size_text(size)}). Use it with: fermix models use {path.stem}")


@group.command(epilog=examples("fermix models remove qwen", "fermix models remove qwen --force"))
@click.argument("name", metavar="NAME", shell_complete=model_files)
@click.option("--force", "is_forced", is_flag=True, help="Also the one that is in use.")
@json_option
def remove(name: str, is_forced: bool, as_json: bool) -> None:
    """Remove a model file, or an unfinished download, from the home."""
    home = own_home()
    if name == BUILT_IN:
        raise OwnerError(f"{name!r} is part of fermix and stays.", hint="fermix models list")
    in_use = _is_in_use(load_settings(home, os.environ), name) and name in ModelStore(home).names()
    if in_use and not is_forced:
        raise OwnerError(
            f"The model {name!r} is in use.",
            hint=f"fermix models use OTHER; or: fermix models remove {name} --force",
        )
    given_back = ModelStore(home).remove(name)
    if as_json:
        print_json({"name": name, "freed_bytes": given_back})
        return
    print(f"{name} is removed; {size_text(given_back)} are free again.", flush=True)
    if in_use:
        say("It was in use: the built-in model answers from the next start on.")


@group.command(epilog=examples("fermix models use qwen", "fermix models use openai"))
@click.argument("name", metavar="NAME", shell_complete=model_files)
@json_option
def use(name: str, as_json: bool) -> None:
    """Let a model of this machine, or a configured provider, answer from now on.

    Writes provider.name and provider.model into config.toml.
    """
    home = own_home()
    settings = load_settings(home, os.environ)
    files = local_models(home, os.environ)
    if name in files:
        if not is_available(os.environ):
            raise OwnerError(
                "This fermix cannot run model files: what they run on comes with the full one.",
                hint="download the full fermix, or connect another model: fermix setup",
            )
        provider, model = LOCAL, name
    elif name == LOCAL or name in settings.providers:
        provider, model = name, None
    else:
        raise unknown(name, [*files, *settings.providers, LOCAL])
    prepare_home(home)
    apply_edits([Edit(("provider", "name"), provider), Edit(("provider", "model"), model)])
    applied = apply_to_running(home, has_changed=True)
    if as_json:
        print_json({"provider": provider, "model": model})
        return
    print(f"{name} answers from now on.", flush=True)
    if applied["hint"]:
        print(applied["hint"])


def _download(
    store: ModelStore, url: str, name: str | None, sha256: str | None, *, is_silent: bool
) -> Path:
    from fermix.providers.downloads import Download, name_of  # only a download needs it

    chosen = name or name_of(url)
    store.path(chosen)  # a name that is none is told before anything else
    with ProgressBar(chosen, is_silent=is_silent) as bar:
        try:
            return Download(store, url, chosen, sha256=sha256, progress=bar).run()
        except KeyboardInterrupt:
            bar.clear()
            part = store.part(chosen)
            if not is_silent and part.exists():
                say(f"{size_text(part.stat().st_size)} are kept. To go on, give the same command again.")
            raise


def _copy(
    store: ModelStore, source: Path, name: str | None, sha256: str | None, *, is_silent: bool
) -> Path:
    chosen = name or source.name.removesuffix(".gguf")
    with ProgressBar(chosen, is_silent=is_silent) as bar:
        try:
            return store.add_file(source, chosen, sha256=sha256, progress=bar)
        except FileNotFoundError as exc:
            raise OwnerError(f"No file '{source}'.") from exc
        except OSError as exc:
            raise explain(exc, store.path(chosen)) from exc


def _is_in_use(settings: Settings, name: str) -> bool:
    return settings.provider.name == LOCAL and settings.provider.model == name


def _row(fact: ModelFact) -> tuple[str, ...]:
    size = "" if fact.size_bytes is None else f"{fact.size_bytes / 1_000_000:.0f} MB"
    mark = "*" if fact.in_use else " "
    return (
        mark,
        one_line(fact.name, 50),
        one_line(fact.provider, 30),
        size,
        _window(fact.window_tokens),
        _price(fact.price),
        one_line(fact.where, 100),
    )


def _window(tokens: int | None) -> str:
    return "window unknown" if tokens is None else f"{tokens:,} tokens"


def _price(price: Price | None) -> str:
    """What a million tokens in and out cost."""
    if price is None:
        return "price unknown"
    if price == FREE:
        return "free"
    return f"${price.input / 1_000_000:g} in, ${price.output / 1_000_000:g} out"


def _unfinished_row(each: Unfinished) -> tuple[str, ...]:
    of = "" if each.total_bytes is None else f" of {each.total_bytes / 1_000_000:.0f}"
    size = f"{each.size_bytes / 1_000_000:.0f}{of} MB"
    return (" ", one_line(each.name, 50), "unfinished", size, "", "", one_line(each.url, 100))
