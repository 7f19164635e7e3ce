"""What is asked of `systemctl` and `loginctl`, and what becomes of their answers."""

from __future__ import annotations

import pytest

from fermix.errors import ManagerRefused, ManagerUnreachable
from fermix.setup.service.manager import Manager
from fermix.setup.service.places import Scope
from tests.setup.service.conftest import FakeManager

SHOWN = """cat <<END
LoadState=loaded
ActiveState=activating
SubState=auto-restart
MainPID=0
Result=exit-code
ExecMainStatus=1
NRestarts=4
NeedDaemonReload=yes
END"""


def test_failures_are_forgotten_before_a_start(fake_manager: FakeManager) -> None:
    Manager(Scope.USER, fake_manager.environment).start()

    assert fake_manager.calls == [
        "systemctl --user --no-ask-password reset-failed fermix.service",
        "systemctl --user --no-ask-password start --no-block fermix.service",
    ]


def test_a_start_goes_on_when_there_was_nothing_to_forget(fake_manager: FakeManager) -> None:
    fake_manager.says('case "$*" in *reset-failed*) exit 1;; esac')

    Manager(Scope.SYSTEM, fake_manager.environment).start()

    assert fake_manager.calls[-1] == "systemctl --no-ask-password start --no-block fermix.service"


def test_the_state_is_read(fake_manager: FakeManager) -> None:
    fake_manager.says(SHOWN)

    state = Manager(Scope.USER, fake_manager.environment).state()

    assert (state.active, state.sub, state.main_pid) == ("activating", "auto-restart", None)
    assert (state.result, state.exit_status, state.restarts) == ("exit-code", 1, 4)
    assert state.is_stale and state.is_up


def test_a_unit_that_waits_for_the_network_is_on_its_way(fake_manager: FakeManager) -> None:
    fake_manager.says("printf 'ActiveState=inactive\\nJob=17\\n'")

    assert Manager(Scope.SYSTEM, fake_manager.environment).state().is_up


def test_an_odd_answer_is_no_state_at_all(fake_manager: FakeManager) -> None:
    fake_manager.says("echo MainPID=many; echo nonsense; printf '\\377\\n'")

    state = Manager(Scope.USER, fake_manager.environment).state()

    assert (state.active, state.main_pid, state.is_up) == ("", None, False)


@pytest.mark.parametrize(
    "words",
    [
        "Failed to connect to bus: No medium found",
        "System has not been booted with systemd as init system (PID 1). Can't operate.",
    ],
)
def test_no_service_manager_is_told_apart(fake_manager: FakeManager, words: str) -> None:
    fake_manager.says(f'echo "{words}" >&2; exit 1')

    with pytest.raises(ManagerUnreachable, match="user service manager cannot be reached"):
        Manager(Scope.USER, fake_manager.environment).reload()


def test_no_systemctl_is_no_service_manager() -> None:
    with pytest.raises(ManagerUnreachable, match="no systemctl"):
        Manager(Scope.USER, {"PATH": "/nonexistent"}).state()


def test_missing_rights_are_told_with_the_command_that_has_them(fake_manager: FakeManager) -> None:
    fake_manager.says('echo "Interactive authentication required." >&2; exit 4')

    with pytest.raises(ManagerRefused, match="needs more rights") as caught:
        Manager(Scope.SYSTEM, fake_manager.environment).stop()

    assert caught.value.hint == "sudo systemctl stop fermix"


@pytest.mark.parametrize(("said", "lingers"), [("yes", True), ("no", False)])
def test_lingering_is_asked_for(fake_manager: FakeManager, said: str, lingers: bool) -> None:
    fake_manager.says(f"echo {said}")

    assert Manager(Scope.USER, fake_manager.environment).lingers("ann") is lingers
    assert fake_manager.calls == ["loginctl show-user ann --property=Linger --value"]


@pytest.mark.parametrize("status", [0, 1])
def test_lingering_is_allowed_or_not(fake_manager: FakeManager, status: int) -> None:
    fake_manager.says(f"exit {status}")

    assert Manager(Scope.USER, fake_manager.environment).let_linger("ann") is (status == 0)
    assert fake_manager.calls == ["loginctl --no-ask-password enable-linger ann"]
