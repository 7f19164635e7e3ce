"""What the owner can say about how messages are taken and answered."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting


@section("gateway")
@dataclass(frozen=True)
class GatewaySettings:
    """[gateway] section."""

    running_turns: int = setting(
        64, "Turns that run at once; the rest wait in the inbox.", unit="turns", minimum=1
    )
    waiting_messages: int = setting(
        200,
        "Messages one conversation may have waiting before new ones are refused.",
        unit="messages",
        minimum=1,
    )
    turn_timeout_s: int = setting(
        1800, "Longest one turn may run before it is stopped.", unit="s", minimum=1
    )
    text_limit_bytes: int = setting(262_144, "Longest text of one message.", unit="bytes", minimum=1024)
    steering: str = setting(
        "queue",
        "A message that comes while an answer is on its way in its conversation: `queue` gives it its own "
        "answer afterwards, `steer` hands it to the running one at its next step.",
        choices=("queue", "steer"),
    )
    unread_reply_days: int = setting(
        7,
        "How long a reply waits for a local client that left before reading it.",
        unit="days",
        minimum=1,
        needs_restart=True,
    )
