"""Twenty broken homes: doctor names each with a command, and --fix repairs those it may.

python show_07_broken_homes.py [--binary dist/fermix-slim]      (as root: a foreign owner, a full disk)
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fermix.process import proc
from tests.bot import CHECKOUT, wait_for

KILLS = 15
SIZE = "3m"
"""Of the disk that is filled."""
STRANGER = 54_321
"""A user that no machine has."""
EVERYWHERE = ".".join("0000")
CONFIG = "# mine\n[http]\nport = 0\n\n[gateway]\nrunning_turns = 8\n"


@dataclass(frozen=True)
class Person:
    """Runs fermix with a home and a folder of their own."""

    argv: tuple[str, ...]
    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.root),
            "FERMIX_HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(CHECKOUT),
            "FERMIX_RUNTIME_DIR": str(CHECKOUT / "dist/unpacked"),
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.argv, *words],
            env=self.environment(),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def doctor(self, *words: str) -> dict[str, Any]:
        done = self.run("doctor", "--json", *words)
        try:
            answer: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"doctor said {done.stdout!r} {done.stderr!r}") from None
        assert done.returncode == (1 if answer["failed"] else 0), done
        return answer


Break = Callable[[Person], AbstractContextManager[None]]


@dataclass(frozen=True)
class Broken:
    """One way a home may be broken."""

    name: str
    check: str
    """Which check must name it."""
    says: str
    """What must be in its words."""
    breaks: Break
    is_repaired: bool = False


def simply(change: Callable[[Path], object]) -> Break:
    """Something that needs no cleaning up."""

    @contextmanager
    def breaks(person: Person) -> Iterator[None]:
        change(person.home)
        yield

    return breaks


def written(name: str, content: str | bytes, mode: int = 0o600) -> Break:
    def change(home: Path) -> None:
        path = home / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)

    return simply(change)


def half_written(home: Path) -> None:
    (home / "config.toml.bak").write_text(CONFIG)
    (home / "config.toml.bak").chmod(0o600)
    (home / "config.toml").write_text(CONFIG[: CONFIG.index("gateway") + 4])


def config_folder(home: Path) -> None:
    (home / "config.toml").unlink()
    (home / "config.toml").mkdir()


def foreign(home: Path) -> None:
    os.chown(home / "memory.db", STRANGER, STRANGER)


def damaged(home: Path) -> None:
    with (home / "memory.db").open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(3 * 4096))


def newer_schema(home: Path) -> None:
    with contextlib.closing(sqlite3.connect(home / "memory.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 9999")


def stale_socket(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / "daemon.sock"))
    (home / "daemon.sock").chmod(0o600)


def log_from_the_future(home: Path) -> None:
    with (home / "logs/fermix.log").open("a") as log:
        log.write("2040-01-01T00:00:00.000Z INFO    fermix.daemon.run [1] [-] from another time\n")


@contextmanager
def full_disk(person: Person) -> Iterator[None]:
    """The home on a disk of its own, with not a byte left."""
    aside = person.root / "aside"
    person.home.rename(aside)
    person.home.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "fermix-show", str(person.home)]
    subprocess.run(mount, check=True)
    try:
        shutil.copytree(aside, person.home, dirs_exist_ok=True)
        with (person.home / "filler").open("wb", buffering=0) as file:
            for size in (65_536, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        yield
    finally:
        subprocess.run(["umount", str(person.home)], check=True)


@contextmanager
def taken_port(person: Person) -> Iterator[None]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        (person.home / "config.toml").write_text(f"[http]\nport = {other.getsockname()[1]}\n")
        yield


@contextmanager
def dead_lease(person: Person) -> Iterator[None]:
    """A process that outlived its daemon still holds the lock it inherited."""
    path = person.home / "run.lock"
    path.write_text("999999 full 1\n")
    script = "import fcntl,sys;f=open(sys.argv[1]);fcntl.flock(f,fcntl.LOCK_EX);print();sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.communicate(timeout=10)


@contextmanager
def leftover_group(person: Person) -> Iterator[None]:
    """A command whose daemon and monitor were both killed."""
    command = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "FERMIX_COMMAND": "show-7"},
    )
    try:
        facts = proc.look(command.pid)
        assert facts is not None
        line = f"+ show-7 {proc.boot_id()} 999999 1 {command.pid} {facts.started}\n"
        (person.home / "run.groups").write_text(line)
        yield
        wait_for("the leftover command to be ended", lambda: command.poll() is not None)
    finally:
        command.kill()
        command.communicate(timeout=10)


@contextmanager
def old_unit(person: Person) -> Iterator[None]:
    """A unit of an older fermix, which lay elsewhere."""
    done = person.run("service", "install", "--user", "--json")
    unit = person.root / ".config/systemd/user/fermix.service"
    assert unit.exists(), done
    lines = unit.read_text().splitlines(keepends=True)
    unit.write_text(
        "".join(
            'ExecStart="/opt/fermix-0.0.1/fermix" run\n' if line.startswith("ExecStart=") else line
            for line in lines
        )
    )
    yield


HOMES = (
    Broken("home open to others", "home", "0755", simply(lambda home: home.chmod(0o755)), is_repaired=True),
    Broken(
        "secret wide open", "home", "secrets/key", written("secrets/key", "k" * 20, 0o644), is_repaired=True
    ),
    Broken("owned by a stranger", "home", f"belongs to user {STRANGER}", simply(foreign)),
    Broken("config half written", "config", "is not TOML", simply(half_written), is_repaired=True),
    Broken(
        "byte-order mark inside",
        "config",
        "line 2",
        written("config.toml", b"[http]\n\xef\xbb\xbfport = 0\n"),
    ),
    Broken("unknown key", "config", "Did you mean", written("config.toml", "[http]\nprot = 1\n")),
    Broken("config is a folder", "config", "is a folder", simply(config_folder)),
    Broken(
        "secret missing",
        "secrets",
        "No secret named 'nope'",
        written(
            "config.toml",
            '[providers.x]\nbase_url = "https://h.example/v1"\nmodel = "m"\napi_key = "@secret:nope"\n',
        ),
    ),
    Broken(
        "open to the network",
        "ports",
        EVERYWHERE,
        written("config.toml", f'[http]\nhost = "{EVERYWHERE}"\n'),
    ),
    Broken("port taken", "ports", "is held by", taken_port),
    Broken("disk full", "disk", "are left on the disk", full_disk),
    Broken("database damaged", "database", "is damaged", simply(damaged)),
    Broken("database of a newer fermix", "database", "schema 9999", simply(newer_schema)),
    Broken("clock gone back", "clock", "2040-01-01", simply(log_from_the_future)),
    Broken("stale socket", "leftovers", "daemon.sock", simply(stale_socket), is_repaired=True),
    Broken("stale pid", "leftovers", "'999999'", written("fermix.pid", "999999\n"), is_repaired=True),
    Broken("command left behind", "leftovers", "still run", leftover_group, is_repaired=True),
    Broken("lease of a dead daemon", "lease", "pid 999999, which is gone", dead_lease),
    Broken("old unit", "service", "/opt/fermix-0.0.1", old_unit, is_repaired=True),
    Broken(
        "model file missing",
        "helpers",
        "gone.gguf",
        written("config.toml", '[provider]\nmodel = "gone"\n[http]\nport = 0\n'),
    ),
)


def troubles(answer: dict[str, Any], broken: Broken) -> list[dict[str, Any]]:
    """What the check says is not well."""
    return [
        each
        for each in answer["findings"]
        if each["check"] == broken.check
        and each["state"] in ("warn", "fail")
        and broken.says in each["saw"]
    ]


def seen(home: Path) -> dict[str, tuple[int, int, str]]:
    """Every file of the home: mode, owner, content."""
    found = {}
    for path in sorted(home.rglob("*")):
        facts = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(home))] = (facts.st_mode, facts.st_uid, content)
    return found


def play(broken: Broken, person: Person) -> None:
    """Raises: AssertionError when it is not named, not repaired, or touched without leave."""
    with broken.breaks(person):
        before = seen(person.home)
        named = troubles(person.doctor(), broken)
        assert named, f"{broken.name}: not named: {person.doctor()}"
        assert all(each["hint"] for each in named), named
        assert seen(person.home) == before, f"{broken.name}: looking changed the home"
        fixed = person.doctor("--fix")
        left = troubles(person.doctor(), broken)
        if broken.is_repaired:
            assert fixed["fixed"] >= 1 and not left, f"{broken.name}: not repaired: {fixed}"
            again = person.doctor("--fix")
            assert again["fixed"] == 0, f"{broken.name}: repaired again: {again}"
        else:
            assert left, f"{broken.name}: gone, though it needs a decision: {fixed}"
            assert seen(person.home) == before, f"{broken.name}: changed without leave"
    word = "named and repaired" if broken.is_repaired else "named"
    print(f"{broken.name}: {word}: {named[0]['hint']}", flush=True)


def killed_while_repairing(person: Person) -> None:
    """Whenever --fix is killed, nothing is lost, and the next one ends the work.

    Raises: AssertionError.
    """
    moments = random.Random(7)
    home, rubble = person.home, b"\0" * 100
    (home / "config.toml.bak").write_text(CONFIG)
    (home / "config.toml.bak").chmod(0o600)
    for _ in range(KILLS):
        if (home / "config.toml").read_text() == CONFIG:
            (home / "config.toml").write_bytes(rubble)
        home.chmod(0o755)
        (home / "secrets/key").write_text("k" * 20)
        (home / "secrets/key").chmod(0o644)
        (home / "fermix.pid").write_text("999999\n")
        process = subprocess.Popen(
            [*person.argv, "doctor", "--fix", "--json"],
            env=person.environment(),
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moments.uniform(0.05, 0.6))
        process.kill()
        process.wait(10)
        config = (home / "config.toml").read_bytes()
        assert config in (rubble, CONFIG.encode()), f"config.toml is {config!r} after a kill"
        assert (home / "config.toml.bak").read_text() == CONFIG
        assert (home / "secrets/key").read_text() == "k" * 20
    assert not person.doctor("--fix")["failed"]
    assert (home / "config.toml").read_text() == CONFIG
    assert [path.read_bytes() for path in home.glob("config.toml.broken-*")] == [rubble]
    print(f"killed {KILLS} times while it repaired: nothing lost, then repaired", flush=True)


def template(argv: tuple[str, ...], root: Path) -> Path:
    """A home that was used: with database, log and folders, and nothing wrong."""
    person = Person(argv, root)
    person.home.mkdir(mode=0o700)
    (person.home / "config.toml").write_text(CONFIG)
    (person.home / "config.toml").chmod(0o600)
    for verb in ("start", "stop"):
        done = person.run(verb)
        assert done.returncode == 0, done
    answer = person.doctor()
    assert not answer["failed"], answer
    return person.home


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, help="a frozen fermix in place of the source")
    parser.add_argument("names", nargs="*", help="only these homes")
    chosen = parser.parse_args()
    argv = (str(chosen.binary.resolve()),) if chosen.binary else (sys.executable, "-m", "fermix")
    homes = [each for each in HOMES if not chosen.names or each.name in chosen.names]
    folder = Path(tempfile.mkdtemp(prefix="fx-show-"))
    held: list[Broken] = []
    is_whole = True
    try:
        (folder / "whole").mkdir()
        whole = template(argv, folder / "whole")
        for number, broken in enumerate(homes):
            person = Person(argv, folder / str(number))
            person.root.mkdir()
            shutil.copytree(whole, person.home)
            try:
                play(broken, person)
                held.append(broken)
            except AssertionError as error:
                print(f"FAILED {error}", flush=True)
        person = Person(argv, folder / "killed")
        person.root.mkdir()
        shutil.copytree(whole, person.home)
        try:
            killed_while_repairing(person)
        except AssertionError as error:
            is_whole = False
            print(f"FAILED {error}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    repaired = sum(each.is_repaired for each in held)
    print(f"{len(held)} of {len(homes)} named, {repaired} repaired")
    return int(len(held) < len(homes) or not is_whole)


if __name__ == "__main__":
    sys.exit(main())
