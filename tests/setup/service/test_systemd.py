"""The unit's text: what a service manager reads out of it."""

from __future__ import annotations

import configparser
import dataclasses
from pathlib import Path

import pytest

from fermix.errors import ServiceError
from fermix.setup.service.places import Scope, home_of
from fermix.setup.service.systemd import (
    Account,
    UnitFacts,
    folders_made,
    quoted,
    unit_text,
)

USER = UnitFacts(
    scope=Scope.USER,
    version="0.1.0",
    command=("/opt/fermix",),
    home=Path("/home/ann/.fermix"),
    environment_file=Path("/home/ann/.fermix/service.env"),
    longest_stop_s=40.0,
)
SYSTEM = dataclasses.replace(USER, scope=Scope.SYSTEM, account=Account("ann", "users"))


def read(facts: UnitFacts) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    unit.read_string(unit_text(facts))
    return unit


def test_a_system_service_runs_as_the_owner_and_a_users_as_the_user() -> None:
    system, user = read(SYSTEM)["Service"], read(USER)["Service"]

    assert (system["User"], system["Group"]) == ("ann", "users")
    assert not {"User", "Group"} & set(user)


def test_what_a_restart_cannot_repair_is_not_restarted_and_nothing_is_for_ever() -> None:
    unit = read(USER)

    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"] == "78"
    burst, window_s = int(unit["Unit"]["StartLimitBurst"]), int(unit["Unit"]["StartLimitIntervalSec"])
    pause_s = int(unit["Service"]["RestartSec"].removesuffix("s"))
    # a loop of ends at once trips the limit: that many pauses pass within the window
    assert burst * pause_s < window_s


def test_a_reload_of_the_unit_is_the_one_that_tells_what_was_wrong() -> None:
    assert read(USER)["Service"]["ExecReload"] == '"/opt/fermix" "reload"'


def test_a_restart_waits_longer_than_a_start_takes_and_the_leftovers_of_the_last_life() -> None:
    assert int(read(USER)["Service"]["RestartSec"].removesuffix("s")) >= 5


def test_the_daemon_has_more_time_to_stop_than_it_takes() -> None:
    usual = read(USER)["Service"]["TimeoutStopSec"]
    patient = read(dataclasses.replace(USER, longest_stop_s=310.0))["Service"]["TimeoutStopSec"]

    assert int(usual.removesuffix("s")) > 40
    assert int(patient.removesuffix("s")) > 310


def test_only_the_supervisor_is_asked_to_stop() -> None:
    assert read(USER)["Service"]["KillMode"] == "mixed"


def test_a_plain_unit_has_nothing_that_needs_a_namespace() -> None:
    confined = set(read(USER)["Service"])
    plain = set(read(dataclasses.replace(USER, is_confined=False))["Service"])

    assert {"PrivateUsers", "CapabilityBoundingSet", "ProtectKernelModules"} <= confined - plain
    # these would make the service manager of a user refuse to start it, or ignore them
    assert not {name for name in plain if name.startswith(("Private", "Protect", "Capability"))}
    assert {"NoNewPrivileges", "SystemCallFilter", "RestrictAddressFamilies"} <= plain


@pytest.mark.parametrize(
    "home", ["/home/ann/my home", '/home/a"b', "/home/100%", "/home/$USER", "/home/a\\b", "/home/ünïx"]
)
def test_any_path_comes_back_as_it_was(home: str) -> None:
    facts = dataclasses.replace(USER, home=Path(home))

    assert home_of(unit_text(facts)) == Path(home)


def test_words_of_a_command_are_not_replaced_by_variables() -> None:
    assert quoted("a $HOME 5%", is_argument=True) == '"a $$HOME 5%%"'
    assert quoted("FERMIX_HOME=/a/$b 5%") == '"FERMIX_HOME=/a/$b 5%%"'


@pytest.mark.parametrize("bad", ["/home/a\nExecStartPre=/bin/evil", "/home/\x00", "/home/\x7f"])
def test_a_path_that_would_break_out_of_its_line_is_refused(bad: str) -> None:
    with pytest.raises(ServiceError, match="control characters"):
        unit_text(dataclasses.replace(USER, home=Path(bad)))
    with pytest.raises(ServiceError, match="control characters"):
        unit_text(dataclasses.replace(USER, environment_file=Path(bad)))


def test_the_folders_made_for_it_are_read_back() -> None:
    folders = ("/home/ann/a b", "/home/ann/c'd")

    assert folders_made(unit_text(dataclasses.replace(USER, folders=folders))) == folders
    assert folders_made(unit_text(USER)) == ()
    assert folders_made("# Folders made for it: 'unclosed\n") == ()
