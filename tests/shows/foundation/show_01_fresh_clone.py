"""Show 1: a fresh clone, a new home, one command: a chat; and the binary answers without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tests.shows.terminal import terminal

CHECKOUT = Path(__file__).resolve().parents[3]
FIRST_WORDS_S = 10
WHOLE_ANSWER_S = 40
BUILD_S = 1800  # packages are downloaded, everything is built
QUESTION = "Say hello"
PROMPT = r"\n[›>]"

# No interface but loopback: whatever wanted to download something would fail.
OFFLINE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
LOOPBACK_UP = 'ip link set lo up; exec "$@"'


def main() -> None:
    """Clone, build, chat, ask; raises AssertionError where the promise does not hold."""
    root = Path(tempfile.mkdtemp(prefix="fx-show-"))
    try:
        clone = root / "fermix"
        subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone)], check=True)
        built_s = chat(clone, new_home(root / "one"))
        again_s = chat(clone, new_home(root / "two"))
        first_s, whole_s = ask(clone, new_home(root / "three"))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    assert first_s <= FIRST_WORDS_S, f"first words after {first_s:.1f} s"
    assert whole_s <= WHOLE_ANSWER_S, f"whole answer after {whole_s:.1f} s"
    print(
        f"answered in a chat {built_s:.0f} s after the clone, {again_s:.1f} s the second time; "
        f"offline: first words {first_s:.1f} s, whole answer {whole_s:.1f} s"
    )


def new_home(folder: Path) -> dict[str, str]:
    """The environment of a person who never ran anything here."""
    folder.mkdir()
    kept = {
        name: value for name, value in os.environ.items() if name.startswith("PIP_")
    }  # where packages are
    return {**kept, "HOME": str(folder), "PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8"}


def chat(clone: Path, environment: dict[str, str]) -> float:
    """Type into `./release.sh chat` like a person; seconds until the answer stood there."""
    started = time.monotonic()
    with terminal(["./release.sh", "chat"], folder=clone, environment=environment) as person:
        prompt = person.wait_for(PROMPT, timeout_s=BUILD_S)
        person.type(f"{QUESTION}\r")
        echo = person.wait_for(QUESTION, timeout_s=20, after=prompt)
        notice = person.wait_for(
            "built into fermix", timeout_s=WHOLE_ANSWER_S, after=echo
        )  # ends the first answer
        person.wait_for(PROMPT, timeout_s=WHOLE_ANSWER_S, after=notice)
        answered_s = time.monotonic() - started
        print(person.shown[prompt - 2 :])
        person.type("\x04")
        assert person.end(20) == 0
    subprocess.run(["dist/fermix", "stop"], cwd=clone, env=environment, check=False, timeout=60)
    return answered_s


def ask(clone: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Ask once with no network at all; seconds to the first words and to the end."""
    command = [*OFFLINE, "sh", "-ec", LOOPBACK_UP, "sh", "dist/fermix", "ask", QUESTION]
    started = time.monotonic()
    with subprocess.Popen(command, cwd=clone, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        answer = os.read(process.stdout.fileno(), 1)
        first_s = time.monotonic() - started
        answer += process.stdout.read()
        assert process.wait(WHOLE_ANSWER_S) == 0
    whole_s = time.monotonic() - started
    print(answer.decode())
    assert len(answer.split()) >= 1, "an empty answer"
    pid = int((Path(environment["HOME"]) / ".fermix/fermix.pid").read_text().split()[0])
    os.kill(pid, 15)  # the private daemon lives in that network; it would leave by itself after a minute
    return first_s, whole_s


if __name__ == "__main__":
    main()
