"""Setting up a checkout: what is missing on the machine is said in one line, what is there is reused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def test_without_rights_missing_system_parts_are_one_apt_line(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    shutil.copy(CHECKOUT / "build/environment.py", tmp_path / "build")
    # In a user namespace without mappings even the superuser is nobody, but can still read this Python.
    nobody = [str(shutil.which("unshare")), "--user"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*nobody, sys.executable, str(tmp_path / "build/environment.py")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    command = "sudo apt-get install -y --no-install-recommends gcc libc6-dev zstd"
    assert done.stderr.startswith(f"fermix: system parts are missing; install them with: {command}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / ".venv").exists()


def test_unchanged_checkout_is_ready_at_once_and_says_nothing() -> None:
    command = [sys.executable, str(CHECKOUT / "build/environment.py")]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, timeout=600, check=False) for _ in range(2)
    )
    assert first.returncode == 0, first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


def test_every_pin_has_hashes_and_no_file_names_a_registry() -> None:
    for name in ("requirements.lock", "model.lock"):
        lines = (CHECKOUT / "build" / name).read_text().splitlines()
        pins = [number for number, line in enumerate(lines) if line and not line.startswith((" ", "#"))]
        assert pins
        assert all(
            lines[number].endswith("\\") and "--hash=sha256:" in lines[number + 1] for number in pins
        )
        assert not any("://" in line or line.startswith("--") for line in lines)


@pytest.mark.parametrize(("before", "status"), [("default_int_handler", 130), ("SIG_IGN", 0)])
def test_ctrl_c_is_silent_while_the_binary_loads_and_heard_by_its_command(before: str, status: int) -> None:
    code = f"""
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.{before})
runpy.run_path({str(CHECKOUT / "build/own_environment.py")!r})
assert signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.SIG_IGN)
from fermix.cli.failure import run_verb
sys.exit(run_verb(lambda: os.kill(os.getpid(), signal.SIGINT), as_json=False))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (status, "")
