"""`/sessions` while one is deleted: an export that cannot come to its end never looks whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fermix.conversations import Conversation, ConversationSummary, ExportPage, StoredMessage
from fermix.errors import SessionBusy, SessionUnknown
from fermix.messages import ConversationKey, UserMessage

CONVERSATION = Conversation(
    id="C1",
    key=ConversationKey("local", "main"),
    title="Plans",
    created_ms=1,
    updated_ms=2,
    archived_ms=None,
)


class Pages:
    """An export of many pages; something happens before the second one."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self.happens = happens
        self.asked: list[int] = []

    def __call__(self, session: str, after_position: int, limit: int) -> ExportPage:
        self.asked.append(after_position)
        if after_position == 1:
            self.happens()
        position = after_position + 1
        said = StoredMessage(
            id=f"M{position}",
            conversation_id="C1",
            turn_id="T",
            position=position,
            message=UserMessage(f"word {position}"),
            created_ms=1,
        )
        summary = ConversationSummary(conversation=CONVERSATION, message_count=9, last_text="")
        return ExportPage(
            summary=summary, messages=[said], next_position=position if position < 9 else None
        )


def test_a_second_deletion_at_the_same_time_is_a_conflict(service):
    def refuse(session: str) -> None:
        raise SessionBusy("The session 'main' is being deleted already.")

    service.desk.delete = refuse

    refused = service.send("DELETE", "/sessions/main")

    assert (refused.status, refused.code) == (409, "session_busy")


def test_a_session_deleted_meanwhile_cuts_its_export_and_is_no_fault(service, caplog):
    def vanish() -> None:
        raise SessionUnknown("No session named 'main'.")

    service.desk.export = Pages(vanish)

    raw = service.raw(service.request("GET", "/sessions/main/export"))

    assert b"word 1" in raw
    assert not raw.endswith(b"0\r\n\r\n")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("kind", ["json", "markdown"])
def test_a_revoked_token_gets_no_further_page(service, kind):
    token = service.daemon.tokens_.create("phone").reveal()
    pages = service.desk.export = Pages(lambda: service.daemon.tokens_.revoke("phone"))

    raw = service.raw(service.request("GET", f"/sessions/main/export?format={kind}", token=token))

    assert b"word 1" in raw
    assert b"word 3" not in raw
    assert not raw.endswith(b"0\r\n\r\n")
    assert pages.asked == [0, 1]
