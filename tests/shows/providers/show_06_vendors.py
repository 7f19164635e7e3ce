"""Setup connects each vendor and tells its troubles apart; ask is answered by each and by this machine.

python -m tests.shows.providers.show_06_vendors [--binary dist/fermix] [--source]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.bot import CHECKOUT, Model

KEY, WRONG = "sk-show-0123456789", "sk-wrong-0123456789"
LIMIT_S = 120.0
VENDORS = {
    "openai": "/v1/responses",
    "anthropic": "/v1/messages",
    "xai": "/v1/responses",
    "openrouter": "/v1/chat/completions",
    "mistral": "/v1/chat/completions",
    "ollama": "/api/chat",
    "box": "/v1/chat/completions",
}
"""Each with the path it is to be asked on; `box` is any other server."""
SCRIPT: dict[str, Any] = {
    "default": {"say": "You said {text}."},
    "models": ["big", "bigger"],
    "keys": [KEY],
}
OLLAMA = {**SCRIPT, "keys": None, "ollama": {"big": ["tools"], "bigger": ["tools"]}}
CREDIT = {
    each["name"].split()[0]: {"status": each["status"], "error": each["body"].get("error", each["body"])}
    for each in msgspec.json.decode((CHECKOUT / "tests/fixtures/providers/vendor_errors.json").read_bytes())
    if each["kind"] == "quota"
}
"""What vendors answer where an account is empty."""


class Machine:
    """A home of its own, and fermix to run in it."""

    def __init__(self, argv: tuple[str, ...], root: Path) -> None:
        self.argv = argv
        self.root = root
        self.home = root / "home"
        (root / "tmp").mkdir()

    def run(self, *words: str, key: str = KEY) -> subprocess.CompletedProcess[str]:
        environment = {
            "HOME": str(self.root),
            "FERMIX_HOME": str(self.home),
            "FERMIX_RUNTIME_DIR": str(CHECKOUT / "dist/unpacked"),
            "TMPDIR": str(self.root / "tmp"),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(CHECKOUT),
            "KEY": key,
        }
        return subprocess.run(
            [*self.argv, *words],
            env=environment,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def asks(self, *words: str, key: str = KEY) -> dict[str, Any]:
        """What setup printed."""
        done = self.run("setup", "--yes", "--json", "--no-service", *words, key=key)
        assert WRONG not in done.stdout + done.stderr and KEY not in done.stdout + done.stderr
        return dict(json.loads(done.stdout))


@contextmanager
def machine(argv: tuple[str, ...]) -> Iterator[Machine]:
    """A machine that is gone afterwards, with whatever runs in its home."""
    root = Path(tempfile.mkdtemp(prefix="fx-"))
    made = Machine(argv, root)
    try:
        yield made
    finally:
        if made.home.exists():
            made.run("stop")
        shutil.rmtree(root, ignore_errors=True)


def one_vendor(argv: tuple[str, ...], vendor: str, path: str) -> int:
    """Its troubles, each under its own code with nothing written, then its answer; how many troubles."""
    is_ollama = vendor == "ollama"
    script = OLLAMA if is_ollama else SCRIPT
    model = Model(script)
    base = model.base_url.removesuffix("/v1") if is_ollama else model.base_url
    server = ["--provider", vendor, "--base-url", base]
    keyed = [*server, "--key-env", "KEY"]
    troubles = [
        ("address", ["--provider", vendor, "--base-url", "http://127.0.0.1:1/v1", "--key-env", "KEY"], KEY),
        ("model_unknown", [*keyed, "--model", "bgi"], KEY),
    ]
    if not is_ollama:
        troubles += [("auth", keyed, WRONG), ("auth", [*keyed, "--model", "big"], WRONG)]
    try:
        with machine(argv) as here:
            for status, words, key in troubles:
                told = here.asks(*words, key=key)
                assert told.get("error", {}).get("code") == f"provider_{status}", (vendor, status, told)
                assert told["error"]["hint"], told
            if vendor in CREDIT:
                model.script({**script, "default": CREDIT[vendor]})
                told = here.asks(*keyed, "--model", "big")
                assert told.get("error", {}).get("code") == "provider_quota", (vendor, told)
                model.script(script)
                troubles.append(("quota", [], ""))
            assert not here.home.exists()
            told = here.asks(*(server if is_ollama else keyed), "--model", "big")
            assert (told["provider"], told["model"]) == (vendor, "big"), told
            answer = here.run("ask", "hello")
            assert answer.stdout == "You said hello.\n", (vendor, answer.stdout, answer.stderr)
            seen = model.requests()[-1]
            assert (seen["path"], seen["body"]["model"]) == (path, "big"), seen
            assert seen["authorization"] == ("" if is_ollama else f"Bearer {KEY}"), seen
            usage = here.run("usage", "--by", "provider", "--json")
            assert vendor in usage.stdout, usage.stdout
    finally:
        model.close()
    return len(troubles)


def this_machine(argv: tuple[str, ...]) -> None:
    """The built-in model without a key or a server, then an Ollama that it finds by itself."""
    model = Model(OLLAMA)
    try:
        with machine(argv) as here:
            here.run("config", "set", "local_model.ollama_url", "")
            told = here.asks("--provider", "local")
            assert told["probe"]["status"] == "ok", told
            answer = here.run("ask", "Say hello.")
            assert answer.returncode == 0 and answer.stdout.strip(), answer
            here.run("config", "set", "local_model.ollama_url", model.base_url.removesuffix("/v1"))
            here.run("stop")
            answer = here.run("ask", "hello")
            assert answer.stdout == "You said hello.\n", answer
            seen = model.requests()[-1]
            assert (seen["path"], seen["body"]["options"]["num_ctx"]) == ("/api/chat", 16_384), seen
    finally:
        model.close()


def main(words: list[str]) -> int:
    """0 when all answer; prints the figure last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix")
    parser.add_argument("--source", action="store_true", help="run the checkout instead of the binary")
    chosen = parser.parse_args(words)
    argv = (sys.executable, "-m", "fermix") if chosen.source else (str(chosen.binary.resolve()),)
    troubles = 0
    for vendor, path in VENDORS.items():
        count = one_vendor(argv, vendor, path)
        troubles += count
        print(f"{vendor}: {count} troubles told apart, then it answered on {path}", flush=True)
    this_machine(argv)
    print(
        f"{len(VENDORS)} vendors connected by setup and answering ask on their own wires, {troubles} "
        "troubles told apart with nothing written; the built-in model answers, and an Ollama that was found"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
