"""Addresses of Unix sockets."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from fermix.ipc.address import socket_address


@pytest.mark.parametrize("folder_length", [1, 60, 100, 200, 255])
def test_socket_is_bound_and_reached_at_any_path_length(tmp_path: Path, folder_length: int) -> None:
    folder = tmp_path / ("d" * folder_length)
    folder.mkdir()
    path = folder / "daemon.sock"

    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        with socket_address(path) as address:
            listener.bind(address)
        listener.listen()
        with socket_address(path) as address:
            client.connect(address)

        assert path.is_socket()


def test_long_path_leaves_no_descriptor_open(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 200)
    folder.mkdir()

    with socket_address(folder / "daemon.sock"):
        assert folder in opened()

    time.sleep(0.01)  # patched: os.close may wait for the hub
    assert folder not in opened()


def opened() -> set[Path]:
    """What this process has open."""
    return {entry.resolve() for entry in Path("/proc/self/fd").iterdir()}


def test_missing_folder_of_a_long_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), socket_address(tmp_path / ("d" * 200) / "daemon.sock"):
        pass
