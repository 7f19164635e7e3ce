"""Secrets in the system's keyring: used where it is there, never waited for where it is not."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
from pathlib import Path

import gevent
import pytest

from fermix.errors import ConfigError, SecretMissing
from fermix.paths import Home
from fermix.secret import Secret
from fermix.secrets.keyring_store import KeyringSecrets
from fermix.secrets.stores import SecretFact
from tests.bot import CHECKOUT

from .conftest import Desktop


def test_a_new_secret_goes_to_the_keyring_and_not_to_the_disk(desktop: Desktop) -> None:
    assert desktop.stores().set("mine", Secret("sk-in-keyring")) == "keyring"

    assert desktop.stores().get("mine").reveal() == "sk-in-keyring"
    assert desktop.kept == {f"fermix {desktop.home.root}|mine": "sk-in-keyring"}
    on_disk = [path for path in desktop.home.root.rglob("*") if path.is_file()]
    assert all("sk-in-keyring" not in path.read_text() for path in on_disk)
    assert [stat.S_IMODE(path.stat().st_mode) for path in on_disk] == [0o600]


def test_order_is_environment_keyring_files(desktop: Desktop) -> None:
    desktop.stores("files").set("mine", Secret("from file"))
    assert desktop.stores().get("mine").reveal() == "from file"
    KeyringSecrets(desktop.home, desktop.environment).set("mine", Secret("from keyring"))
    assert desktop.stores().get("mine").reveal() == "from keyring"
    assert desktop.stores(FERMIX_SECRET_MINE="from env").get("mine").reveal() == "from env"


def test_setting_a_secret_again_leaves_no_older_copy_behind(desktop: Desktop) -> None:
    desktop.stores("files").set("mine", Secret("old"))
    desktop.stores("auto").set("mine", Secret("new"))
    assert not (desktop.home.secrets / "mine").exists()

    desktop.mood("locked")
    assert desktop.stores("auto").set("mine", Secret("newest")) == "files"
    desktop.mood("")

    assert desktop.stores().get("mine").reveal() == "newest"
    assert desktop.stores().facts() == [SecretFact("mine", "files")]


def test_a_secret_set_in_a_file_stays_the_newest_when_the_keyring_counts_again(desktop: Desktop) -> None:
    desktop.stores().set("mine", Secret("old"))
    before = desktop.asked

    desktop.stores("files").set("mine", Secret("new"))

    assert desktop.asked == before
    assert desktop.stores().get("mine").reveal() == "new"
    assert desktop.stores().facts() == [SecretFact("mine", "files")]
    desktop.stores().remove("mine")
    assert desktop.kept == {}


@pytest.mark.parametrize("mood", ["locked", "absent", "crash"])
def test_without_a_usable_keyring_a_file_is_taken(desktop: Desktop, mood: str) -> None:
    desktop.mood(mood)

    assert desktop.stores("auto").set("mine", Secret("value")) == "files"
    with pytest.raises(ConfigError, match="in vain") as refused:
        desktop.stores("keyring").set("mine", Secret("sk-value"))
    assert "sk-value" not in refused.value.message
    assert "secrets.store files" in str(refused.value.hint)
    assert desktop.stores().get("mine").reveal() == "value"


def test_a_locked_keyring_is_not_taken_for_an_empty_one(desktop: Desktop) -> None:
    desktop.stores().set("mine", Secret("value"))
    desktop.mood("locked")

    with pytest.raises(ConfigError, match="'mine' in vain: it is locked"):
        desktop.stores().get("mine")
    with pytest.raises(ConfigError, match="it is locked"):
        desktop.stores().remove("mine")
    assert desktop.stores().names() == ["mine"]


def test_a_daemon_without_the_session_says_so(desktop: Desktop) -> None:
    desktop.stores().set("mine", Secret("value"))
    del desktop.environment["DBUS_SESSION_BUS_ADDRESS"]

    with pytest.raises(ConfigError, match="none that can be reached from here"):
        desktop.stores().get("mine")


def test_what_was_removed_from_the_keyring_by_hand_is_missing(desktop: Desktop) -> None:
    desktop.stores().set("mine", Secret("value"))
    (desktop.root / "keyring.json").unlink()

    with pytest.raises(SecretMissing, match="in the keyring"):
        desktop.stores().get("mine")


def test_a_secret_is_asked_for_once_and_again_after_it_changed(desktop: Desktop) -> None:
    desktop.stores().set("mine", Secret("one"))
    running = desktop.stores()
    before = len(desktop.asked)

    assert [running.get("mine").reveal() for _ in range(3)] == ["one"] * 3
    assert desktop.asked[before:] == ["get mine"]
    desktop.stores().set("mine", Secret("two"))
    assert running.get("mine").reveal() == "two"


def test_a_home_without_keyring_secrets_asks_none(desktop: Desktop) -> None:
    desktop.stores("files").set("mine", Secret("value"))
    stores = desktop.stores()

    stores.get("mine")
    with pytest.raises(SecretMissing):
        stores.get("other")
    stores.names()

    assert desktop.asked == []


def test_looking_a_secret_up_loads_no_keyring_library(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from fermix.paths import Home;"
        "from fermix.secrets import SecretStores;"
        f"print(SecretStores(Home(Path({str(tmp_path)!r})), {{}}).names());"
        "print([name for name in sys.modules if 'keyring' in name or name == 'subprocess'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "[]"]


def test_removing_forgets_it_everywhere(desktop: Desktop) -> None:
    desktop.stores().set("mine", Secret("value"))
    desktop.stores("files").set("mine", Secret("older"))

    desktop.stores().remove("mine")

    assert desktop.kept == {} and desktop.stores().names() == []
    with pytest.raises(SecretMissing):
        desktop.stores().remove("mine")


def test_files_mode_never_asks_a_keyring(desktop: Desktop) -> None:
    desktop.stores().set("mine", Secret("value"))
    before = desktop.asked

    with pytest.raises(SecretMissing):
        desktop.stores("files").get("mine")
    assert desktop.asked == before


def test_a_secret_that_is_no_text_is_refused_without_showing_it(desktop: Desktop) -> None:
    desktop.stores().set("mine", Secret("value"))
    desktop.mood("garbage")

    with pytest.raises(ConfigError, match="is no text"):
        desktop.stores().get("mine")
    for text in ("", " \n", "a\0b", "x" * 100_000):
        with pytest.raises(ConfigError):
            desktop.stores("keyring").set("mine", Secret(text))


@pytest.mark.slow
def test_a_keyring_that_hangs_is_given_up_and_nobody_waits_for_it_meanwhile(desktop: Desktop) -> None:
    ticks: list[int] = []
    beat = gevent.spawn(lambda: [ticks.append(1) or gevent.sleep(0.05) for _ in range(1000)])
    desktop.mood("hang")

    assert desktop.stores().set("mine", Secret("value")) == "files"

    beat.kill()
    assert len(ticks) > 40  # of the 5 s that were waited


def test_a_bus_that_says_nothing_is_no_keyring(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind(str(tmp_path / "bus"))
        bus.listen()
        address = f"unix:path={tmp_path}/bus"
        environment = {"PATH": "/usr/bin:/bin", "DBUS_SESSION_BUS_ADDRESS": address}
        assert not KeyringSecrets(Home(tmp_path), environment).is_usable()


@pytest.mark.parametrize("address", ["unix:path=/nowhere/bus", "nonsense", "tcp:host=127.0.0.1,port=1"])
def test_a_bus_that_is_not_there_is_no_keyring(tmp_path: Path, address: str) -> None:
    environment = {"PATH": "/usr/bin:/bin", "DBUS_SESSION_BUS_ADDRESS": address}

    assert not KeyringSecrets(Home(tmp_path), environment).is_usable()
