"""Tool calls come out right from every numbering seen in the field."""

import pytest

from fermix.errors import Unreadable
from fermix.providers.apis.tool_calls import ToolCallAssembler, read_arguments, written_call

Delta = tuple[int | None, str, str, str]


def assembled(*deltas: Delta) -> list[tuple[str, str, dict[str, object]]]:
    assembler = ToolCallAssembler()
    for delta in deltas:
        assembler.add(*delta)
    return [(call.id, call.name, call.arguments) for call in assembler.calls(was_cut=False, names={})]


def test_deltas_without_any_index_make_one_call() -> None:
    calls = assembled((None, "a", "read", ""), (None, "", "", '{"path":'), (None, "", "", '"x"}'))
    assert calls == [("a", "read", {"path": "x"})]


def test_three_ids_without_an_index_make_three_calls() -> None:
    calls = assembled(*((None, id, "read", f'{{"n":{n}}}') for n, id in enumerate("abc")))
    assert calls == [("a", "read", {"n": 0}), ("b", "read", {"n": 1}), ("c", "read", {"n": 2})]


def test_index_zero_for_every_parallel_call_makes_two_calls() -> None:
    calls = assembled((0, "a", "search", '{"q":"A"}'), (0, "b", "search", '{"q":"B"}'))
    assert calls == [("a", "search", {"q": "A"}), ("b", "search", {"q": "B"})]


def test_argument_pieces_under_a_new_index_belong_to_the_open_call() -> None:
    calls = assembled((0, "a", "read", ""), (1, "", "", '{"path":'), (2, "", "", '"x"}'))
    assert calls == [("a", "read", {"path": "x"})]


def test_interleaved_calls_are_kept_apart_by_their_index() -> None:
    calls = assembled(
        (0, "a", "read", ""), (1, "b", "list", ""), (0, "", "", '{"n":0'), (1, "", "", '{"n":1'),
        (0, "", "", "}"), (1, "", "", "}"),
    )  # fmt: skip
    assert calls == [("a", "read", {"n": 0}), ("b", "list", {"n": 1})]


def test_id_and_name_repeated_in_every_delta_make_one_call() -> None:
    assert assembled(*((0, "a", "read", part) for part in ('{"p', '":1', "}"))) == [("a", "read", {"p": 1})]


def test_a_fresh_id_in_every_delta_makes_one_call() -> None:
    calls = assembled((0, "a", "read", ""), (0, "b", "", '{"p":'), (0, "c", "", "1}"))
    assert calls == [("a", "read", {"p": 1})]


def test_calls_without_ids_get_ids_of_their_own() -> None:
    calls = assembled((0, "", "read", '{"n":0}'), (1, "", "read", '{"n":1}'), (1, "", "read", '{"n":2}'))
    assert [arguments for _, _, arguments in calls] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert len({id for id, _, _ in calls}) == 3


@pytest.mark.parametrize("id", ["", "call_0"])
def test_calls_at_two_indexes_that_share_an_id_stay_apart(id: str) -> None:
    calls = assembled((0, id, "read", '{"n":0}'), (1, id, "read", '{"n":'), (1, id, "", "1}"))
    assert [arguments for _, _, arguments in calls] == [{"n": 0}, {"n": 1}]
    assert calls[0][0] != calls[1][0]


@pytest.mark.parametrize("text", ["", "  ", "null", "{}", '"{}"'])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert read_arguments(text) == ({}, None)


def test_an_object_inside_a_text_is_unpacked() -> None:
    assert read_arguments('"{\\"a\\": 1}"') == ({"a": 1}, None)


@pytest.mark.parametrize(
    "text",
    ['["a.txt","hi"]', '{"recap": "', "7", '{"a":1}{"a":2}', "[" * 5000, '{"a":' * 80 + "1" + "}" * 80],
)
def test_anything_but_one_object_is_told_to_the_model(text: str) -> None:
    arguments, broken = read_arguments(text)
    assert arguments == {}
    assert broken and len(broken) < 600


def test_a_cut_answer_runs_none_of_its_calls() -> None:
    assembler = ToolCallAssembler()
    assembler.add(0, "a", "write", '{"path":"a.txt","content":"abc')
    (call,) = assembler.calls(was_cut=True, names={})
    assert call.arguments == {}
    assert call.broken and "cut off" in call.broken


def test_names_on_the_wire_become_our_names() -> None:
    assembler = ToolCallAssembler()
    assembler.add(0, "a", "calendar_read", "{}")
    assert (
        assembler.calls(was_cut=False, names={"calendar_read": "calendar.read"})[0].name == "calendar.read"
    )


def test_endless_calls_are_refused() -> None:
    assembler = ToolCallAssembler()
    with pytest.raises(Unreadable, match="128 tool calls"):
        for number in range(1000):
            assembler.add(number, f"id{number}", "read", "{}")


def test_huge_arguments_are_refused_and_not_kept() -> None:
    assembler = ToolCallAssembler()
    for _ in range(40):
        assembler.add(0, "a", "write", "x" * 65_536)
    (call,) = assembler.calls(was_cut=False, names={})
    assert call.arguments == {}
    assert call.broken and "larger than" in call.broken


def test_a_name_repeated_before_whole_arguments_goes_on_with_the_call() -> None:
    texts = ('{"a": "}', '\\"{', '"', "}")
    calls = assembled(*((0, "", "read", text) for text in (*texts, '{"a":2}')))
    assert [arguments for _, _, arguments in calls] == [{"a": '}"{'}, {"a": 2}]


def test_a_name_repeated_a_hundred_thousand_times_costs_no_second_look() -> None:
    assembler = ToolCallAssembler()
    for _ in range(100_000):
        assembler.add(0, "", "read", "{")
    assert len(assembler.calls(was_cut=False, names={})) == 1


def test_names_and_ids_without_end_are_not_carried_along() -> None:
    assembler = ToolCallAssembler()
    assembler.add(0, "i" * 100_000, "n", "")
    for _ in range(1_000):
        assembler.add(0, "", "m" * 1_000, "")
    assembler.add(0, "", "", '{"k": 1}')

    (call,) = assembler.calls(was_cut=False, names={})

    assert len(call.id) < 100 and len(call.name) == 200
    assert call.arguments == {} and call.broken is not None and "longer than 200" in call.broken


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "file_read", "arguments": {"path": "a.txt"}}',
        '{"name": "file_read", "parameters": {"path": "a.txt"}}',
        '```json\n{"name": "file_read", "arguments": {"path": "a.txt"}}\n```',
        '<tool_call>\n{"name": "file_read", "arguments": {"path": "a.txt"}}\n</tool_call>\n',
    ],
)
def test_a_call_that_was_written_down_is_made(text: str) -> None:
    call = written_call(text, {"file_read": "file_read"})

    assert call is not None and call.id
    assert (call.name, call.arguments, call.broken) == ("file_read", {"path": "a.txt"}, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        '{"name": "unknown", "arguments": {}}',
        '{"name": ["file_read"], "arguments": {}}',
        '{"name": "file_read"}',
        '{"name": "file_read", "arguments": "x"}',
        '{"name": "file_read", "arguments": {}, "more": 1}',
        'I would call {"name": "file_read", "arguments": {}}',
        '{"name": "file_read", "arguments": {}} and then say so',
        '{"name": "file_read", "arguments": {',
        "{" * 100_000 + "}",
    ],
)
def test_words_are_no_call(text: str) -> None:
    assert written_call(text, {"file_read": "file_read"}) is None
