"""Whose rights files are touched with, and which kind of unit a machine can bear."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fermix.errors import ServiceError
from fermix.setup.service.namespaces import reason_against
from fermix.setup.service.owner import acting_as, caller, owner_of, person

SOMEBODY = 65534


def test_root_reaches_only_what_the_owner_may(tmp_path: Path) -> None:
    before = (os.geteuid(), os.getegid(), os.getgroups())
    owner = person(SOMEBODY if os.geteuid() == 0 else os.geteuid())
    secret = tmp_path / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)

    with acting_as(owner):
        assert os.geteuid() == owner.uid
        assert os.access(secret, os.R_OK, effective_ids=True) == (before[0] != 0)

    assert (os.geteuid(), os.getegid(), os.getgroups()) == before


def test_rights_come_back_after_a_failure(tmp_path: Path) -> None:
    before = os.geteuid()

    with pytest.raises(OSError, match="none"), acting_as(person(SOMEBODY)):
        (tmp_path / "none").stat()

    assert os.geteuid() == before


def test_a_home_is_its_owners_and_a_new_one_the_callers(tmp_path: Path) -> None:
    assert owner_of(tmp_path, {}).uid == os.geteuid()
    assert owner_of(tmp_path / "new", {}) == caller({})


def test_behind_sudo_the_caller_is_who_called_it() -> None:
    found = caller({"SUDO_UID": str(SOMEBODY)})

    assert found.uid == (SOMEBODY if os.geteuid() == 0 else os.geteuid())
    assert caller({"SUDO_UID": "; rm"}).uid == os.geteuid()


def test_an_owner_nobody_knows_is_told() -> None:
    with pytest.raises(ServiceError, match="No user of this machine has the number 3999999"):
        person(3_999_999)


def test_a_machine_whose_ssh_would_break_gets_the_plain_unit(tmp_path: Path) -> None:
    alone = reason_against(tmp_path)
    (tmp_path / "20-systemd-ssh-proxy.conf").touch()

    reason = reason_against(tmp_path)

    assert alone is None or "no namespaces" in alone
    assert reason is not None
    assert "ssh" in reason or "no namespaces" in reason
