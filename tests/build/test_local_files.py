"""The local model's files are found beside the source and inside the binary."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fermix.providers import local_files

from .conftest import Packer

FROZEN = """
import sys
sys.frozen = True
from fermix.errors import FermixError
from fermix.providers import local_files
environment = {"FERMIX_EXE": sys.argv[1]} if sys.argv[1] else {}
print(local_files.is_available(environment))
try:
    files = local_files.find(environment)
    print(files.runtime_path, files.model_path)
except FermixError as error:
    print(error.message, "|", error.hint)
"""

OWN_FILE = """
import sys
sys.frozen = True
from fermix.providers import local_server
sys.exit(local_server.main(sys.argv[1:]))
"""


def frozen(executable: Path | str, cache: Path) -> list[str]:
    """What a frozen program that this launcher started finds: availability, then the files or the error."""
    done = subprocess.run(
        [sys.executable, "-c", FROZEN, str(executable)],
        env={"FERMIX_RUNTIME_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_from_source_the_installed_packages_are_used() -> None:
    assert local_files.is_available()
    files = local_files.find()
    assert files.runtime_path is None
    assert files.model_path.stat().st_size > 50_000_000


def test_full_binary_unpacks_runtime_and_model(pack: Packer) -> None:
    launched = pack("full", segments=("program", "runtime", "model"), files=("weights.gguf",))
    is_available, found = frozen(launched.executable, launched.cache)
    runtime, model = found.split()
    assert is_available == "True"
    assert Path(runtime).name.startswith("runtime-")
    assert Path(model).name == "weights.gguf"
    assert Path(model).is_file()


def test_own_model_file_runs_on_the_runtime_inside_the_binary(pack: Packer, tmp_path: Path) -> None:
    # An empty module, so that its name in the error tells which one was imported.
    launched = pack("full", segments=("program", "runtime", "model"), files=("xllamacpp.py",))
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            OWN_FILE,
            f"--report={tmp_path / 'port'}",
            f"--model={tmp_path / 'own.gguf'}",
        ],
        env={
            "FERMIX_RUNTIME_DIR": str(launched.cache),
            "FERMIX_EXE": str(launched.executable),
            "FERMIX_LOCAL_MODEL_KEY": "key",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr.endswith("module 'xllamacpp' has no attribute 'CommonParams'\n")
    assert [version.name[:8] for version in launched.versions()] == ["runtime-"]


def test_slim_binary_says_what_to_do(pack: Packer) -> None:
    launched = pack("slim")
    is_available, message = frozen(launched.executable, launched.cache)
    assert is_available == "False"
    assert message.startswith(
        "This is the slim fermix, which carries no local model. | download the full fermix"
    )


def test_program_started_without_its_launcher_says_so(tmp_path: Path) -> None:
    is_available, message = frozen("", tmp_path)
    assert is_available == "False"
    assert "was started without it. | start the file 'fermix'" in message
