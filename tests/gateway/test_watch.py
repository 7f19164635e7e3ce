"""Turn logs: every watcher sees every event once and in order, whenever it comes."""

from __future__ import annotations

import pytest

from fermix.gateway.watch import EVENT_WEIGHT, KEPT_TURNS, KEPT_WEIGHT, LIFE, TurnLog, Watch, first_seq
from fermix.secret import Secret
from fermix.secrets import Redactor
from fermix.tasks import TaskGroup, sleep


def log_with(*names: str) -> TurnLog:
    log = TurnLog("t")
    for name in names:
        log.publish(name)
    return log


@pytest.mark.parametrize("after", range(-1, 6))
def test_watcher_gets_what_is_after_its_last_number(after: int) -> None:
    log = log_with("a", "b", "c", "done")

    assert [event.seq for event in log.follow(after)] == [seq for seq in (1, 2, 3, 4) if seq > after]


def test_watchers_of_any_pace_see_the_same() -> None:
    log, seen, group = TurnLog("t"), {"quick": "", "slow": ""}, TaskGroup("watchers")

    def watch(name: str, pause_s: float) -> None:
        for event in log.follow(0):
            seen[name] += str(event.data.get("text", event.name))
            sleep(pause_s)

    group.start(lambda: watch("quick", 0))
    group.start(lambda: watch("slow", 0.002))
    for number in range(50):
        log.publish("text_delta", text=str(number))
        if number % 7 == 0:
            sleep(0)
    log.publish("done")

    assert group.join(10)
    assert seen["quick"] == seen["slow"] == "".join(map(str, range(50))) + "done"


def test_watcher_that_leaves_does_not_disturb_the_others() -> None:
    log = log_with("a", "done")
    leaving = log.follow(0)
    next(leaving)
    leaving.close()

    assert [event.name for event in log.follow(0)] == ["a", "done"]


@pytest.mark.parametrize(("life", "seq"), [(0, 1), (1, 1), (2, 2 * LIFE), (3, 3 * LIFE)])
def test_each_life_numbers_from_a_round_number_of_its_own(life: int, seq: int) -> None:
    log = TurnLog("t")
    log.start_life(life)
    log.publish("restarted")

    assert first_seq(life) == seq
    assert [event.seq for event in (log.publish("done"), *log.follow(0))[1:]] == [seq, seq + 1]


def test_numbers_never_go_back() -> None:
    log = log_with("a", "b")
    log.start_life(1)
    log.start_after(1)
    log.publish("done")

    assert [event.seq for event in log.follow(0)] == [1, 2, 3]


def test_ending_is_there_for_those_who_have_seen_it_all() -> None:
    log = TurnLog("t")
    log.publish("done", status="completed", text="hi")

    assert list(log.follow(1)) == []
    assert log.ending == {"status": "completed", "text": "hi"}


def test_ended_turns_are_kept_for_a_while_and_the_oldest_go_first() -> None:
    watch = Watch()
    running = watch.log_of("running")
    for number in range(KEPT_TURNS + 5):
        watch.log_of(str(number))
        watch.close(str(number))

    assert watch.find("4") is None and watch.find("5") is not None
    assert watch.find("running") is running is watch.log_of("running")


def test_closing_an_unknown_turn_changes_nothing() -> None:
    watch = Watch()
    watch.close("unknown")

    assert watch.find("unknown") is None


def test_long_turns_are_kept_only_as_far_as_memory_goes() -> None:
    watch = Watch()

    for number in range(4):
        log = watch.log_of(f"t{number}")
        log.publish("text_delta", text="x" * (KEPT_WEIGHT // 3))
        log.publish("done", status="completed")
        watch.close(f"t{number}")

    assert [watch.find(f"t{number}") is not None for number in range(4)] == [False, False, True, True]


def test_words_nobody_took_yet_come_in_fewer_pieces_and_whole() -> None:
    log = TurnLog("t")
    watcher = log.follow(0)
    log.publish("text_delta", text="seen ")
    assert next(watcher).data == {"text": "seen "}

    for letter in "unseen":
        log.publish("text_delta", text=letter)
    log.publish("reasoning_delta", text="hm")
    log.publish("done", status="completed")

    rest = [(event.seq, event.name, event.data.get("text")) for event in watcher]
    assert rest == [(2, "text_delta", "unseen"), (3, "reasoning_delta", "hm"), (4, "done", None)]
    assert [event.seq for event in log.follow(1)] == [2, 3, 4]


def test_million_letters_without_a_reader_weigh_little_more_than_themselves() -> None:
    log = TurnLog("t")

    for _ in range(100_000):
        log.publish("text_delta", text="x" * 10)

    assert log.weight < 1_100_000
    log.publish("done", status="completed")
    assert sum(len(str(event.data.get("text", ""))) for event in log.follow(0)) == 1_000_000


def test_letters_weigh_more_than_themselves() -> None:
    log = TurnLog("t")

    log.publish("text_delta", text="x")

    assert log.weight > EVENT_WEIGHT


def test_a_secret_split_over_deltas_reaches_no_watcher() -> None:
    redactor = Redactor()
    redactor.add(Secret("token-123"))
    log = TurnLog("t", redactor)

    log.publish("reasoning_delta", text="hm, tok")
    for piece in ("It is to", "ken-1", "23, tok"):
        log.publish("text_delta", text=piece)
    log.publish("tool_call_complete", call_id="1", name="x", arguments={"keys": ["token-123"], "n": 1})
    log.publish("text_delta", text="half a tok")
    log.publish("restarted")
    log.publish("done", text="token-123")

    told = [(event.name, event.data.get("text")) for event in log.follow(0)]
    assert told == [
        ("reasoning_delta", "hm, tok"),
        ("text_delta", "It is ***, tok"),
        ("tool_call_complete", None),
        ("text_delta", "half a "),
        ("restarted", None),
        ("done", "***"),
    ]
    assert list(log.follow(0))[2].data["arguments"] == {"keys": ["***"], "n": 1}
