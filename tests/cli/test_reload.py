"""`fermix reload` and what the other commands say about it."""

from __future__ import annotations

import json
from typing import Any


def test_reload_says_what_was_applied_and_what_waits_for_a_restart(fermix: Any, daemon: Any) -> None:
    outcome = {
        "changed": ["agent.instructions", "logs.level", "http.port"],
        "applied": ["agent.instructions", "logs.level"],
        "needs_restart": ["http.port"],
        "unchanged": False,
    }
    daemon.on["reload"] = lambda request: request.result(**outcome)

    done = fermix("reload")
    as_json = fermix("reload", "--json")

    assert (done.exit_code, as_json.exit_code) == (0, 0)
    assert done.stdout == (
        "Applied: agent.instructions, logs.level\nChanged, but needs a restart: http.port\n"
    )
    assert done.stderr == "It counts after: fermix restart\n"
    assert json.loads(as_json.stdout) == outcome


def test_reload_of_an_unchanged_file_says_so(fermix: Any, daemon: Any) -> None:
    daemon.on["reload"] = lambda request: request.result(
        changed=[], applied=[], needs_restart=[], unchanged=True
    )

    done = fermix("reload")

    assert (done.exit_code, done.stdout, done.stderr) == (0, "Nothing changed in config.toml.\n", "")


def test_reload_of_a_bad_file_is_told_with_its_repair(fermix: Any, daemon: Any) -> None:
    daemon.on["reload"] = lambda request: request.error(
        "setting_unknown", "No setting named 'agent.stepz'.", "fermix config show --defaults"
    )

    done = fermix("reload")

    assert (done.exit_code, done.stdout) == (1, "")
    assert "No setting named 'agent.stepz'." in done.stderr
    assert "try: fermix config show --defaults" in done.stderr


def test_reload_without_a_daemon_is_exit_code_3(fermix: Any) -> None:
    assert fermix("reload").exit_code == 3


def test_changed_setting_says_whether_a_running_daemon_needs_a_reload_or_a_restart(
    fermix: Any, daemon: Any
) -> None:
    live = fermix("config", "set", "gateway.running_turns", "3")
    fixed = fermix("config", "set", "http.port", "4040")
    both = fermix("config", "unset", "gateway.running_turns", "http.port")
    fermix("config", "set", "agent.steps_per_turn", "3")
    table = fermix("config", "unset", "agent")
    daemon.close()
    alone = fermix("config", "set", "gateway.running_turns", "4")

    assert [each.exit_code for each in (live, fixed, both, table, alone)] == [0] * 5
    assert live.stderr == table.stderr == "It counts after: fermix reload\n"
    assert fixed.stderr == both.stderr == "It counts after: fermix restart\n"
    assert alone.stderr == ""


def test_config_shows_which_settings_need_a_restart(fermix: Any) -> None:
    shown = fermix("config", "show", "--defaults").stdout
    settings = json.loads(fermix("config", "show", "--defaults", "--json").stdout)["settings"]

    assert "# Whether fermix listens for HTTP at all. Counts after a restart.\n" in shown
    needs = {each["key"]: each["needs_restart"] for each in settings}
    assert (needs["http.port"], needs["gateway.running_turns"]) == (True, False)
