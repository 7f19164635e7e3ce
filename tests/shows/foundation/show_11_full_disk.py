"""The disk of the home fills up in every state of a message: it waits, and is answered when there is room.

python show_11_full_disk.py [--full-s 4]      (as root: the home is a small tmpfs)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from fermix.errors import FermixError
from tests.bot import Bot, Model, collect, fresh_id, wait_for
from tests.sequences import check_histories
from tests.states import AFTER_THE_REPLY, BEFORE_THE_REPLY, rows, script

SIZE = "3m"
CPU_S = 0.2
"""Most processor time the daemon may use while it waits for room."""


@contextlib.contextmanager
def small_home(model: Model) -> Iterator[Bot]:
    """A bot whose home is a disk of its own."""
    bot = Bot(model)
    config = (bot.home / "config.toml").read_text()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "fermix-show", str(bot.home)], check=True
    )
    try:
        (bot.home / "config.toml").write_text(config)
        (bot.home / "config.toml").chmod(0o600)
        yield bot
    finally:
        bot.close_daemons()
        subprocess.run(["umount", str(bot.home)], check=True)
        bot.close()


def fill(path: Path) -> None:
    """Write until not a byte more fits."""
    with path.open("wb", buffering=0) as file:
        for size in (65_536, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


def used_s(*pids: int) -> float:
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def full_in_state(state: str, full_s: float) -> float:
    """Processor seconds spent while there was no room; AssertionError when a promise was broken."""
    folder = Path(tempfile.mkdtemp(prefix="fx-notes-"))
    marks, notes = folder / "marks", folder / "notes"
    marks.mkdir()
    model = Model(script(notes))
    try:
        with small_home(model) as bot:
            bot.start("--stop-at", state, "--marks", str(marks))
            return full_once(bot, state, full_s, marks=marks, notes=notes)
    finally:
        model.close()
        shutil.rmtree(folder)


def full_once(bot: Bot, state: str, full_s: float, *, marks: Path, notes: Path) -> float:
    client_id, worker = fresh_id(), bot.worker
    with bot.connect() as connection:
        stream = connection.stream("message", {"text": "m1", "client_id": client_id}, 30.0)
        if state in AFTER_THE_REPLY:
            connection.stream("ack", {"turn_id": collect(stream).result["turn_id"]}, 10.0)
        wait_for(f"the daemon to stop at {state}", lambda: any(marks.iterdir()))
        fill(bot.home / "filler")
        os.kill(worker, signal.SIGCONT)
        before_s = used_s(bot.arbiter, worker)
        time.sleep(full_s)
        spent_s = used_s(bot.arbiter, worker) - before_s
        try:
            bot.say("refused", session="other")
            raise AssertionError(f"{state}: a message was accepted that cannot have been stored")
        except FermixError as refused:
            assert refused.code in ("store_full", "store_failing"), refused
        (bot.home / "filler").unlink()
        reply = bot.say("m1", client_id=client_id)
    assert (reply.result["status"], reply.text) == ("completed", "Answer to m1."), reply.result
    assert notes.read_text().split() == ["m1"], f"{state}: the tool ran {notes.read_text().split()}"
    settled = [("committed",)]
    wait_for("the message to be committed", lambda: rows(bot, "SELECT state FROM inbox") == settled, 70.0)
    check_histories(bot)
    assert bot.say("m2").text == "Answer to m2."
    assert bot.worker == worker, f"{state}: the worker was replaced"
    assert bot.status()["state"] == "ready"
    return spent_s


def start_without_room() -> None:
    """A start on a full disk says what is the matter, and works when there is room."""
    model = Model(script(Path("unused")))
    with small_home(model) as bot:
        fill(bot.home / "filler")
        start = [sys.executable, "-m", "fermix", "start"]
        refused = subprocess.run(
            start, env=bot.environment(), cwd=bot.root, capture_output=True, text=True, check=False
        )
        assert refused.returncode == 1, refused
        assert "the disk of its home is full" in refused.stderr, refused.stderr
        (bot.home / "filler").unlink()
        bot.start()
    model.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full-s", type=float, default=4.0)
    chosen = parser.parse_args()
    start_without_room()
    print("a start without room: said so", flush=True)
    worst = 0.0
    states = (*BEFORE_THE_REPLY, *AFTER_THE_REPLY)
    for state in states:
        worst = max(worst, full_in_state(state, chosen.full_s))
        print(f"{state}: waited for room, then answered once", flush=True)
    assert worst <= CPU_S, f"waiting cost {worst:.2f} s of processor time"
    print(
        f"a full disk in {len(states)} states: each message answered once when there was room, nothing "
        f"accepted without it, {worst:.2f} s of processor time in {chosen.full_s:g} s of waiting"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
