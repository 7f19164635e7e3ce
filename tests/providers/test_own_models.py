"""A model file of the owner's is used for what it can do, not as the small one that comes with fermix."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import pytest

from fermix.errors import HelperFailed
from fermix.process import Helper, HelperSpec
from fermix.providers.build import build
from fermix.providers.gguf import FileFacts, facts_of
from fermix.providers.local_files import find
from fermix.providers.port import Done, ModelLimits
from fermix.providers.settings import LocalModelSettings, ProviderSettings
from fermix.providers.vendors.vendor import Parts

from .conftest import ask, end_of

TEMPLATE = "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def head(*, template: str = TEMPLATE, window: int | None = 40_960, words: int = 1000) -> bytes:
    """The beginning of a model file, its template behind the words of its tokenizer as in real ones."""
    pairs = [text("general.architecture") + struct.pack("<I", 8) + text("qwen3")]
    if window is not None:
        pairs.append(text("qwen3.context_length") + struct.pack("<II", 4, window))
    tokens = b"".join(text(f"word{number}") for number in range(words))
    pairs.append(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, words) + tokens)
    pairs.append(text("tokenizer.chat_template") + struct.pack("<I", 8) + text(template))
    return b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs)


def own(parts: Parts, content: bytes) -> Path:
    parts.home.models.mkdir()
    path = parts.home.models / "own.gguf"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (head(), FileFacts(40_960, takes_tools=True)),
        (head(template="{{ messages }}"), FileFacts(40_960)),
        (head(window=None), FileFacts(None, takes_tools=True)),
        (head()[:120], FileFacts(40_960)),
        (b"GGUF", FileFacts()),
        (b"", FileFacts()),
        (text("general.architecture"), FileFacts()),
        (text("tokenizer.chat_template") + struct.pack("<IQ", 8, 2**63), FileFacts()),
    ],
)
def test_what_a_file_says_is_read_and_nothing_made_up(
    parts: Parts, content: bytes, expected: FileFacts
) -> None:
    assert facts_of(own(parts, content)) == expected


def test_a_file_that_is_gone_says_nothing(tmp_path: Path) -> None:
    assert facts_of(tmp_path / "gone.gguf") == FileFacts()


@pytest.mark.parametrize(
    ("wanted", "trained", "window"), [(8192, 40_960, 8192), (8192, 4096, 4096), (16_384, 40_960, 16_384)]
)
def test_own_file_gets_the_window_the_owner_gives_it_and_its_tools(
    parts: Parts, wanted: int, trained: int, window: int
) -> None:
    specs: list[HelperSpec] = []

    def refuse(spec: HelperSpec) -> Helper:
        specs.append(spec)
        raise HelperFailed("no room")

    own(parts, head(window=trained))
    local = LocalModelSettings(ollama_url="", own_context_tokens=wanted)
    parts = dataclasses.replace(parts, local=local, start_helper=refuse)
    provider = build(ProviderSettings(model="own"), {}, parts=parts)

    assert provider.limits == ModelLimits(
        takes_tools=True, window_tokens=window, max_output_tokens=min(2048, window // 4)
    )
    end_of(provider.stream(ask()))
    assert f"--context={window}" in specs[0].argv
    provider.stop(1)


@pytest.mark.slow
def test_own_file_reads_more_than_the_small_model_is_given(parts: Parts) -> None:
    parts.home.models.mkdir()
    (parts.home.models / "own.gguf").symlink_to(find().model_path)
    local = LocalModelSettings(ollama_url="", own_context_tokens=4096)
    provider = build(ProviderSettings(model="own"), {}, parts=dataclasses.replace(parts, local=local))

    done = end_of(provider.stream(dataclasses.replace(ask("word " * 1500), max_output_tokens=4)))

    assert isinstance(done, Done)
    assert done.usage.input_tokens > 1500
    assert (provider.limits.takes_tools, provider.limits.window_tokens) == (False, 4096)
    provider.stop(5)
