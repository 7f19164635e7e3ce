"""A model file comes over HTTP whole or not at all, through cuts, restarts and servers of all kinds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermix.errors import (
    AddressRefused,
    DownloadFailed,
    FermixError,
    ModelUnusable,
    OwnerError,
    RedirectRefused,
)
from fermix.paths import Home
from fermix.providers.downloads import Download, name_of
from fermix.providers.model_store import ModelStore
from tests.providers.model_host import ModelHost, model_bytes

WHOLE = model_bytes()


@pytest.fixture
def host() -> Iterator[ModelHost]:
    made = ModelHost()
    made.files["/tiny.gguf"] = WHOLE
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    made = ModelStore(Home(tmp_path))
    made.folder.mkdir()
    return made


def download(store: ModelStore, url: str, **options: object) -> Path:
    told = {"sha256": None, "progress": lambda *_: None, "pause_s": lambda _: 0.0, "silence_s": 5.0}
    return Download(store, url, "tiny", **{**told, **options}).run()


def left(store: ModelStore) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir())


def test_file_comes_whole_and_private(host: ModelHost, store: ModelStore) -> None:
    seen: list[tuple[str, int, int | None]] = []

    path = download(
        store,
        host.url(),
        sha256=hashlib.sha256(WHOLE).hexdigest().upper(),
        progress=lambda *told: seen.append(told),
    )

    assert path.read_bytes() == WHOLE
    assert path.stat().st_mode & 0o777 == 0o600
    assert left(store) == ["tiny.gguf"]
    assert ("downloading", len(WHOLE), len(WHOLE)) in seen
    assert seen[-1] == ("checking", len(WHOLE), len(WHOLE))


def test_address_where_nobody_listens_is_told_at_once(host: ModelHost, store: ModelStore) -> None:
    url = host.url()
    host.close()
    pauses: list[int] = []

    with pytest.raises(DownloadFailed, match="refused") as told:
        download(store, url, pause_s=lambda attempt: pauses.append(attempt) or 0.0)

    assert pauses == []
    assert "are kept" not in told.value.message
    assert "address is right" in (told.value.hint or "")


def test_cut_connections_go_on_where_they_were(host: ModelHost, store: ModelStore) -> None:
    host.cuts = [50_000, 10, 60_000]

    assert download(store, host.url()).read_bytes() == WHOLE
    assert [wanted for _, wanted in host.asked] == ["", "bytes=50000-", "bytes=50010-", "bytes=110010-"]


def test_interrupted_download_goes_on_in_another_process(host: ModelHost, store: ModelStore) -> None:
    host.cuts = [70_000] + [0] * 10
    with pytest.raises(DownloadFailed, match=r"0\.1 MB are kept") as told:
        download(store, host.url())
    assert f"fermix models add {host.url()} --name tiny" in str(told.value.hint)
    (waiting,) = store.unfinished()
    assert (waiting.name, waiting.size_bytes, waiting.total_bytes) == ("tiny", 70_000, len(WHOLE))
    host.cuts = []

    assert download(store, host.url()).read_bytes() == WHOLE
    assert host.asked[-1][1] == "bytes=70000-"
    assert left(store) == ["tiny.gguf"]


def test_folder_that_takes_nothing_is_told(host: ModelHost, store: ModelStore) -> None:
    (store.folder / ".tiny.lock").mkdir()

    with pytest.raises(OwnerError, match="Cannot write"):
        download(store, host.url())
    assert host.asked == []


def test_download_that_was_whole_already_is_only_looked_at(host: ModelHost, store: ModelStore) -> None:
    host.cuts = [70_000] + [0] * 10
    with pytest.raises(DownloadFailed):
        download(store, host.url())
    asked = len(host.asked)
    store.part("tiny").write_bytes(WHOLE)

    assert download(store, host.url()).read_bytes() == WHOLE
    assert len(host.asked) == asked


def test_part_that_is_too_long_is_begun_again(host: ModelHost, store: ModelStore) -> None:
    host.cuts = [70_000] + [0] * 10
    with pytest.raises(DownloadFailed):
        download(store, host.url())
    host.cuts = []
    store.part("tiny").write_bytes(WHOLE + b"x")

    assert download(store, host.url()).read_bytes() == WHOLE


def test_file_that_changed_meanwhile_begins_at_its_first_byte(host: ModelHost, store: ModelStore) -> None:
    host.cuts = [70_000] + [0] * 10
    with pytest.raises(DownloadFailed):
        download(store, host.url())
    other = host.files["/tiny.gguf"] = model_bytes(150_000, seed=9)
    host.etag, host.cuts = '"two"', []

    assert download(store, host.url()).read_bytes() == other


@pytest.mark.parametrize("change", ["no ranges", "no tag", "weak tag", "no length"])
def test_server_that_cannot_go_on_is_asked_for_all_of_it(
    host: ModelHost, store: ModelStore, change: str
) -> None:
    host.takes_ranges = change != "no ranges"
    host.etag = {"no tag": "", "weak tag": 'W/"one"'}.get(change, host.etag)
    host.says_length = change != "no length"
    host.cuts = [70_000] if host.says_length else []

    assert download(store, host.url()).read_bytes() == WHOLE


def test_part_of_another_address_is_not_mixed_in(host: ModelHost, store: ModelStore) -> None:
    host.cuts = [70_000] + [0] * 10
    with pytest.raises(DownloadFailed):
        download(store, host.url())
    host.cuts = []
    other = host.files["/other.gguf"] = model_bytes(150_000, seed=9)

    assert download(store, host.url("/other.gguf")).read_bytes() == other


def test_busy_server_is_asked_again(host: ModelHost, store: ModelStore) -> None:
    host.statuses = [503, 429]
    assert download(store, host.url()).read_bytes() == WHOLE


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ("missing", DownloadFailed, "answered with 404"),
        ("login", DownloadFailed, "answered with 403"),
        ("page", ModelUnusable, "is a web page; expected the file itself"),
        ("page as bytes", ModelUnusable, "'tiny' is a web page"),
        ("something else", ModelUnusable, "is no GGUF file: it begins with b'PK"),
        ("old version", ModelUnusable, "GGUF of version 1"),
        ("cut off", ModelUnusable, "is cut off"),
        ("wrong sum", ModelUnusable, "not the one that was promised"),
    ],
)
def test_what_is_no_model_leaves_nothing_behind(
    host: ModelHost, store: ModelStore, change: str, error: type[FermixError], words: str
) -> None:
    bodies = {
        "page": b"<!DOCTYPE html><p>Sign in",
        "page as bytes": b"<!DOCTYPE html><p>Sign in" * 9,
        "something else": b"PK" + b"x" * 50_000,
        "old version": model_bytes(version=1),
        "cut off": WHOLE[:90],
    }
    host.files["/tiny.gguf"] = bodies.get(change, WHOLE)
    host.content_type = "text/html; charset=utf-8" if change == "page" else host.content_type
    host.statuses = [403] if change == "login" else []
    path = "/nowhere.gguf" if change == "missing" else "/tiny.gguf"

    with pytest.raises(error, match=words):
        download(store, host.url(path), sha256="0" * 64 if change == "wrong sum" else None)
    assert left(store) == []


def test_silent_server_is_given_up_and_what_came_is_kept(host: ModelHost, store: ModelStore) -> None:
    host.gate.clear()

    with pytest.raises(DownloadFailed, match="broke"):
        download(store, host.url(), silence_s=0.2)

    host.gate.set()
    assert download(store, host.url()).read_bytes() == WHOLE
    assert host.asked[-1][1].startswith("bytes=1")


def test_nobody_there_is_told(store: ModelStore, host: ModelHost) -> None:
    url = host.url()
    host.close()
    with pytest.raises(DownloadFailed, match=r"Cannot connect to http://127\.0\.0\.1:"):
        download(store, url)


def test_redirect_on_the_same_server_is_followed(host: ModelHost, store: ModelStore) -> None:
    host.redirects = {"/latest": "/tiny.gguf?x=1"}
    host.files["/tiny.gguf?x=1"] = WHOLE
    assert download(store, host.url("/latest")).read_bytes() == WHOLE


def test_redirect_to_an_inner_address_is_refused_unless_it_is_public(
    host: ModelHost, store: ModelStore
) -> None:
    other = ModelHost()
    other.files["/tiny.gguf"] = WHOLE
    host.redirects = {"/latest": other.url()}

    with pytest.raises(AddressRefused, match=r"127\.0\.0\.1 is not a public address"):
        download(store, host.url("/latest"))
    assert other.asked == []
    assert download(store, host.url("/latest"), is_allowed=lambda _: True).read_bytes() == WHOLE
    other.close()


def test_redirects_in_a_circle_end(host: ModelHost, store: ModelStore) -> None:
    host.redirects = {"/a": "/b", "/b": "/a"}
    with pytest.raises(RedirectRefused, match="More than 5 redirects"):
        download(store, host.url("/a"))


def test_second_process_at_the_same_model_is_refused(host: ModelHost, store: ModelStore) -> None:
    with store.adding("tiny"), pytest.raises(OwnerError, match="Another fermix is adding"):
        download(store, host.url())


def test_file_bigger_than_the_disk_is_refused_before_it_is_asked_for(
    host: ModelHost, store: ModelStore
) -> None:
    class Huge(dict):
        def get(self, path: str, default: object = None) -> object:
            return Body()

    class Body:
        def __len__(self) -> int:
            return 1 << 60

        def __getitem__(self, _: slice) -> bytes:
            return WHOLE

    host.files = Huge()
    with pytest.raises(OwnerError, match="MB free"):
        download(store, host.url())
    assert left(store) == []


@pytest.mark.parametrize("url", ["ftp://host/x.gguf", "file:///etc/passwd", "http://user:key@host/x.gguf"])
def test_address_of_another_kind_is_refused(store: ModelStore, url: str) -> None:
    with pytest.raises(AddressRefused):
        download(store, url)


def test_name_is_the_last_word_of_the_address() -> None:
    assert name_of("https://host/a/qwen3-4b.gguf?download=true#x") == "qwen3-4b"
