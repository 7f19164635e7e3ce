"""A 20 MB model comes over HTTP through cuts and a kill; a deleted session leaves no word in the home.

python -m tests.shows.operations.show_09_sessions_and_models [--binary dist/fermix-slim] [--source]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bot import CHECKOUT, Bot, Model, fresh_id, wait_for
from tests.providers.model_host import ModelHost, model_bytes

MODEL_BYTES = 20_000_000
SECRET, KEPT = "mandragora", "rosemary"
ROUNDS = 60


def main(words: list[str]) -> int:
    """0 when both hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    parser.add_argument("--source", action="store_true", help="run the checkout instead of the binary")
    chosen = parser.parse_args(words)
    argv = (sys.executable, "-m", "fermix") if chosen.source else (str(chosen.binary.resolve()),)
    figures = [add_a_model(argv), delete_a_session(argv)]
    print("; ".join(figures))
    return 0


def add_a_model(argv: tuple[str, ...]) -> str:
    """Two cuts while it runs, a kill as the third, then to the end."""
    root = Path(tempfile.mkdtemp(prefix="fx-show-"))
    host = ModelHost()
    whole = host.files["/tiny.gguf"] = model_bytes(MODEL_BYTES)
    host.cuts, host.quick = [5_000_000, 3_000_000], 2
    host.gate.clear()
    environment = {
        "HOME": str(root),
        "FERMIX_HOME": str(root / "home"),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(CHECKOUT),
        "FERMIX_RUNTIME_DIR": str(CHECKOUT / "dist/unpacked"),
    }
    command = [*argv, "models", "add", host.url(), "--sha256", hashlib.sha256(whole).hexdigest()]
    part = root / "home/models/tiny.gguf.part"
    began = time.monotonic()
    try:
        process = subprocess.Popen(command, env=environment, cwd=root)
        rest = (MODEL_BYTES - 8_000_000) // 2
        wait_for("half of the rest", lambda: part.exists() and part.stat().st_size == MODEL_BYTES - rest)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        kept = part.stat().st_size
        host.gate.set()
        subprocess.run(command, env=environment, cwd=root, check=True, timeout=120)
        assert (root / "home/models/tiny.gguf").read_bytes() == whole, "another file came"
        assert host.asked[-1][1] == f"bytes={kept}-", f"asked for {host.asked[-1]}, {kept} bytes were there"
        assert sorted(os.listdir(part.parent)) == ["tiny.gguf"], os.listdir(part.parent)  # noqa: PTH208
        sent = len(host.asked)
    finally:
        host.close()
        shutil.rmtree(root)
    return f"{MODEL_BYTES // 1_000_000} MB in {sent} requests, 3 cuts, {time.monotonic() - began:.1f} s"


def delete_a_session(argv: tuple[str, ...]) -> str:
    """Two sessions side by side, one deleted while a turn of it runs and another waits."""
    model = Model(
        {
            "rules": [
                {"when": "slowly", "then": [{"say": f"{SECRET} " * 200, "chunks": 200, "delay_ms": 50}]},
                {"when": "", "then": [{"say": "You said: {text}"}]},
            ]
        }
    )
    bot = Bot(model, argv=(*argv, "run"), full=True)
    dice = random.Random(9)
    try:
        bot.start()
        for number in range(ROUNDS):
            bot.say(f"{KEPT}-{number}", session="kept")
            bot.say(f"{SECRET}-{number} " * dice.choice((1, 30, 300)), session="garden")
        size = dice.choice((10, 20))
        attach(bot, "garden", f"{SECRET} in a file " * size)
        with bot.connect() as talking, bot.connect() as waiting, bot.connect() as connection:
            running = talking.stream("message", message(f"say {SECRET} slowly"), 60.0)
            wait_for("its first words", lambda: getattr(running.read(5.0), "name", "") == "text_delta")
            waiting.stream("message", message(f"and {SECRET} again"), 60.0)
            wait_for("the other one to wait", lambda: bot.status()["turns"]["waiting"] == 1)
            assert found(bot, SECRET), "nothing was there to be deleted"
            began = time.monotonic()
            erased = connection.call("sessions.delete", {"session": "garden"}, 60.0)
            took_s = time.monotonic() - began
        where = found(bot, SECRET)
        assert not where, f"words of the deleted session are in {where}"
        bot.kill(bot.arbiter, bot.worker)
        bot.start()
        where = found(bot, SECRET)
        assert not where, f"words of the deleted session are in {where} after a restart"
        assert bot.say("hello", session="garden").text == "You said: hello"
        with bot.connect() as connection:
            listed = connection.call("sessions.list", {}, 10.0)["sessions"]
        counts = {each["session"]: each["message_count"] for each in listed}
        assert counts == {"kept": 2 * ROUNDS, "garden": 2}, counts
        assert found(bot, KEPT)
    finally:
        bot.close()
        model.close()
    return (
        f"{erased['messages']} messages and {erased['files']} file deleted in {took_s:.2f} s, 0 words left"
    )


def message(text: str) -> dict[str, object]:
    return {"text": text, "session": "garden", "client_id": fresh_id()}


def attach(bot: Bot, session: str, text: str) -> None:
    """Send a file along, as `fermix ask --attach` does."""
    path = bot.root / "herbs.txt"
    path.write_text(text)
    words = ["ask", "--session", session, "--attach", str(path), "--json", "look"]
    argv = [word for word in bot.argv if word != "run"]
    done = subprocess.run(
        [*argv, *words], env=bot.environment(), cwd=bot.root, capture_output=True, check=True, timeout=60
    )
    assert json.loads(done.stdout)["status"] == "completed", done.stdout


def found(bot: Bot, words: str) -> list[str]:
    """The home's files that hold these words."""
    files = (path for path in bot.home.rglob("*") if path.is_file())
    return [str(path.relative_to(bot.home)) for path in files if words.encode() in path.read_bytes()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
