"""From nothing to an answered message: a person at a terminal, flags alone, and over a hand-written config.

python -m tests.shows.operations.show_01_setup [--binary dist/fermix]

Where gnome-keyring-daemon and dbus-run-session are installed, the key also goes into a real keyring.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bot import CHECKOUT, Model
from tests.shows.terminal import terminal

KEY = "sk-show-0123456789"
LIMIT_S = 60.0
SCRIPT = {"models": ["big", "bigger"], "keys": [KEY], "default": {"say": "You said {text}."}}
HAND_WRITTEN = """\
# ── my fermix ──────────────
[logs]
level = "debug"   # until the trouble is over

[http]
port = 0

  # the box in the cellar
[providers.box]
timeout_s  =  300
model = 'old'
base_url = "URL"

[agent]
instructions = '''
Be brief.
'''
[gateway]
running_turns=16#not too many
"""


class Machine:
    """A home of its own and the environment to run fermix in it."""

    def __init__(self, binary: Path, root: Path) -> None:
        self.binary = binary
        self.root = root
        self.home = root / "home"
        (root / "tmp").mkdir()
        self.environment = {
            "HOME": str(root),
            "FERMIX_HOME": str(self.home),
            "FERMIX_RUNTIME_DIR": str(CHECKOUT / "dist/unpacked"),
            "TMPDIR": str(root / "tmp"),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }

    def run(self, *words: str, **environment: str) -> str:
        """What the command printed; it must succeed."""
        done = subprocess.run(
            [self.binary, *words],
            env={**self.environment, **environment},
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def ask(self) -> None:
        answer = self.run("ask", "hello")
        assert answer == "You said hello.\n", answer


@contextmanager
def machine(binary: Path) -> Iterator[Machine]:
    """A machine that is gone afterwards, with whatever runs in its home."""
    root = Path(tempfile.mkdtemp(prefix="fx-"))
    made = Machine(binary, root)
    try:
        yield made
    finally:
        subprocess.run([binary, "stop"], env=made.environment, capture_output=True, timeout=90, check=False)
        shutil.rmtree(root, ignore_errors=True)


def at_a_terminal(binary: Path, model: Model) -> float:
    """Seconds until the first message was answered; the key is forgotten first and asked for then."""
    with machine(binary) as here:
        began = time.monotonic()
        with terminal([str(binary), "setup"], folder=here.root, environment=here.environment) as person:
            at = person.wait_for(r"(\d+)  Another server", timeout_s=LIMIT_S)
            number = person.shown[:at].split("Another server")[0].split()[-1]
            steps = (
                ("Number", number),
                ("Its address", model.base_url),
                ("Key for mine .not shown.", KEY),
                ("answers with big.*Your name", "Ada"),
                ("in the background", "n"),
            )
            at = 0
            for question, answer in steps:
                at = person.wait_for(f"(?s){question}.*: ", timeout_s=LIMIT_S, after=at)
                person.type(f"{answer}\r")
            person.wait_for("Next: fermix chat", timeout_s=LIMIT_S, after=at)
            assert person.end(LIMIT_S) == 0
            assert KEY not in person.shown
        with terminal([str(binary), "chat"], folder=here.root, environment=here.environment) as person:
            person.wait_for("›", timeout_s=LIMIT_S)
            person.type("hello\r")
            person.wait_for("You said hello", timeout_s=LIMIT_S)
            took_s = time.monotonic() - began
            person.type("\x04")
            assert person.end(LIMIT_S) == 0
        assert "Your owner is Ada." in model.requests()[-1]["body"]["messages"][0]["content"]
    assert took_s <= LIMIT_S, f"{took_s:.1f} s"
    return took_s


def by_flags(binary: Path, model: Model) -> float:
    """Seconds from nothing to the answer, without a terminal."""
    with machine(binary) as here:
        began = time.monotonic()
        words = ["--base-url", model.base_url, "--key-env", "KEY", "--name", "Ada", "--no-service", "--yes"]
        here.run("setup", *words, KEY=KEY)
        here.ask()
        took_s = time.monotonic() - began
        assert KEY not in (here.home / "config.toml").read_text()
    assert took_s <= LIMIT_S, f"{took_s:.1f} s"
    return took_s


def over_a_config(binary: Path, model: Model) -> list[str]:
    """The lines that differ afterwards, as a diff shows them; a second run adds none."""
    with machine(binary) as here:
        here.home.mkdir(mode=0o700)
        config = here.home / "config.toml"
        before = HAND_WRITTEN.replace("URL", model.base_url)
        config.write_bytes(before.encode())
        words = [
            "setup",
            "--provider",
            "box",
            "--model",
            "big",
            "--key-env",
            "KEY",
            "--name",
            "Ada",
            "--yes",
        ]
        here.run(*words, KEY=KEY)
        after = config.read_bytes().decode()
        assert (here.home / "config.toml.bak").read_bytes() == before.encode()
        here.run(*words, KEY=KEY)
        assert config.read_bytes() == after.encode()
        here.ask()
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]
    expected = [
        "-model = 'old'",
        '+model = "big"',
        '+api_key = "@secret:box"',
        '+owner_name = "Ada"',
        "+",
        "+[provider]",
        '+name = "box"',
    ]
    assert sorted(changed) == sorted(expected), changed
    return changed


KEYRING_SCRIPT = """
becomes() {
    for _ in $(seq 50); do "$FX" _keyring check x - 2>/dev/null; [ $? = "$1" ] && return; sleep 0.1; done
}
printf show | gnome-keyring-daemon --unlock --components=secrets --foreground >/dev/null 2>&1 &
ring=$!
becomes 0
"$FX" setup --base-url "$URL" --key-env KEY --yes --json
unset KEY
"$FX" ask hello
"$FX" stop
kill $ring; wait $ring
gnome-keyring-daemon --components=secrets --foreground >/dev/null 2>&1 &
ring=$!
becomes 4
"$FX" config check
kill $ring; wait $ring
"""
"""The exit status 4 says that a keyring is there and locked."""


def in_a_keyring(binary: Path, model: Model) -> str:
    """The same with a real Secret Service in a session bus of its own: open, and then locked."""
    if not shutil.which("gnome-keyring-daemon") or not shutil.which("dbus-run-session"):
        return "a real keyring was not tried, there is none on this machine"
    with machine(binary) as here:
        here.environment |= {
            "XDG_RUNTIME_DIR": str(here.root / "tmp"),
            "PATH": os.environ["PATH"],
            "FX": str(binary),
            "URL": model.base_url,
            "KEY": KEY,
        }
        done = subprocess.run(
            ["dbus-run-session", "--", "bash", "-c", KEYRING_SCRIPT],
            env=here.environment,
            cwd=here.root,
            capture_output=True,
            text=True,
            timeout=2 * LIMIT_S,
            check=False,
        )
        said = done.stdout + done.stderr
        assert '"store": "keyring"' in said, said
        assert "You said hello." in said, said
        assert "'mine' in vain: it is locked" in said, said
        on_disk = [path for path in here.home.rglob("*") if path.is_file() and not path.is_symlink()]
        assert all(KEY.encode() not in path.read_bytes() for path in on_disk)
    return "in a real keyring the key is in no file of the home, and a locked one is named"


def main() -> int:
    """Run all parts; prints the figure last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix")
    binary = parser.parse_args().binary.resolve()
    if not binary.exists():
        subprocess.run(["./release.sh"], cwd=CHECKOUT, check=True)
    model = Model(SCRIPT)
    try:
        asked_s = at_a_terminal(binary, model)
        print(f"a person was answered after {asked_s:.1f} s")
        flags_s = by_flags(binary, model)
        print(f"flags alone took {flags_s:.1f} s")
        changed = over_a_config(binary, model)
        print("\n".join(changed))
        keyring = in_a_keyring(binary, model)
    finally:
        model.close()
    print(
        f"from nothing to an answer: {asked_s:.1f} s at a terminal, {flags_s:.1f} s by flags; over a "
        f"hand-written config {len(changed)} lines differ, all meant, a second run changes none; {keyring}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
