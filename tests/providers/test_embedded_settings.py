"""What the owner says about the built-in model reaches the process that runs it."""

from __future__ import annotations

import dataclasses

from fermix.errors import HelperFailed
from fermix.process import Helper, HelperSpec
from fermix.providers.port import Failed, FailureKind
from fermix.providers.settings import LocalModelSettings
from fermix.providers.vendors.embedded import EmbeddedModel
from fermix.providers.vendors.vendor import Parts

from .conftest import ask, end_of


def test_settings_are_handed_to_the_helper_and_its_failure_to_the_person(parts: Parts) -> None:
    specs: list[HelperSpec] = []

    def refuse(spec: HelperSpec) -> Helper:
        specs.append(spec)
        raise HelperFailed("no room")

    local = LocalModelSettings(ollama_url="", context_tokens=1024, threads=3, start_timeout_s=7.0)
    model = EmbeddedModel("local", dataclasses.replace(parts, local=local, start_helper=refuse))

    failed = end_of(model.stream(ask()))

    assert isinstance(failed, Failed) and failed.kind is FailureKind.PROVIDER_UNAVAILABLE
    assert "no room" in failed.message and "fermix setup" in failed.message
    assert {"--context=1024", "--threads=3", "--batch-threads=3"} <= set(specs[0].argv)
    assert specs[0].ready_timeout_s == 7.0
    model.stop(1)


def test_start_that_breaks_is_told_and_not_tried_again_and_again(parts: Parts) -> None:
    tries: list[HelperSpec] = []

    def break_down(spec: HelperSpec) -> Helper:
        tries.append(spec)
        raise ZeroDivisionError

    model = EmbeddedModel("local", dataclasses.replace(parts, start_helper=break_down))

    failed = end_of(model.stream(ask()))

    assert isinstance(failed, Failed) and "fermix logs" in failed.message
    assert len(tries) == 1
    model.stop(1)
