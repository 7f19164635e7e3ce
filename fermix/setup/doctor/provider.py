"""The model provider: asked one small thing through a daemon."""

from __future__ import annotations

from fermix.errors import FermixError
from fermix.setup.doctor.finding import Finding, State, Topic
from fermix.setup.doctor.scene import Call, Scene

TOPIC = Topic("provider")
METHOD = "provider.probe"
_PASSING = ("rate_limited",)
"""What ends by itself."""


def look(scene: Scene) -> list[Finding]:
    """Whether it answers; without a daemon only when one may be started for it."""
    call = scene.call
    try:
        if call is None:
            if scene.silence is not None:
                return [TOPIC.skipped("Not asked: the daemon does not answer.", "fermix restart")]
            if scene.wanted() is None:
                return [TOPIC.skipped("Not asked: config.toml cannot be used.", "fermix config check")]
            if scene.start is None:
                return [TOPIC.skipped("Not asked: no daemon runs.", "fermix doctor --full")]
            call = scene.start()
        return [_told(call)]
    except FermixError as error:
        if error.code == "method_unknown":
            return [TOPIC.skipped("Not asked: the daemon that runs is too old for it.", "fermix restart")]
        return [TOPIC.fail(f"It could not be asked: {error.message}", error.hint)]


def _told(call: Call) -> Finding:
    answer = call(METHOD, {})
    status, model = str(answer.get("status")), answer.get("model")
    if status == "ok":
        return TOPIC.ok(f"'{model}' answered in {answer.get('latency_ms')} ms.")
    state = State.WARN if status in _PASSING else State.FAIL
    hint = answer.get("hint")
    saw = f"{answer.get('message') or 'It did not answer.'} ({status})"
    return Finding(TOPIC.check, state, saw, str(hint) if hint else "fermix logs -n 50")
