"""The environment of children: only what is allowed, and nothing of a frozen program's own."""

from __future__ import annotations

from fermix.process import child_environment

ALLOWED = ("PATH", "LC_*", "LD_LIBRARY_PATH")


def test_only_allowed_names_pass() -> None:
    base = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "PATHS": "y", "LC": "z"}

    assert child_environment(base, ALLOWED, {"MORE": "1"}) == {"PATH": "/bin", "LC_ALL": "C", "MORE": "1"}


def test_our_own_secrets_never_pass() -> None:
    assert child_environment({"FERMIX_SECRET_KEY": "x", "PATH": "/bin"}, ("*",)) == {"PATH": "/bin"}


def test_the_library_path_from_before_freezing_is_restored() -> None:
    base = {
        "LD_LIBRARY_PATH": "/cache/unpacked",
        "LD_LIBRARY_PATH_ORIG": "/opt/lib",
        "_PYI_ARCHIVE_FILE": "x",
    }

    assert child_environment(base, ("*",)) == {"LD_LIBRARY_PATH": "/opt/lib"}


def test_a_library_path_that_freezing_made_is_dropped() -> None:
    frozen = {
        "LD_LIBRARY_PATH": "/cache/unpacked",
        "_MEIPASS2": "/cache/unpacked",
        "_PYI_PARENT_PROCESS_LEVEL": "1",
    }

    assert child_environment(frozen, ("*",)) == {}
    assert child_environment({**frozen, "LD_LIBRARY_PATH_ORIG": ""}, ("*",)) == {}


def test_the_owners_library_path_passes_from_source() -> None:
    assert child_environment({"LD_LIBRARY_PATH": "/opt/lib"}, ALLOWED) == {"LD_LIBRARY_PATH": "/opt/lib"}
