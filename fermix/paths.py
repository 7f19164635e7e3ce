"""Where everything lives in the home (`FERMIX_HOME`, default `~/.fermix`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Home:
    """The names of the home's files and folders; making this value touches nothing."""

    root: Path

    @staticmethod
    def find(environment: Mapping[str, str]) -> Home:
        """The home an environment asks for: FERMIX_HOME, else ~/.fermix."""
        named = environment.get("FERMIX_HOME")
        return Home(Path(named or "~/.fermix").expanduser().absolute())

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    @property
    def database(self) -> Path:
        return self.root / "memory.db"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def bootstrap(self) -> Path:
        """The owner's words for the agent: who it is, how it works, how it sounds."""
        return self.root / "bootstrap" / "main"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def blobs(self) -> Path:
        """Attachments in flight, one file per content hash."""
        return self.root / "blobs"

    @property
    def removals(self) -> Path:
        """Files of deleted sessions that are still to be removed, one list each."""
        return self.root / "removals"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def log(self) -> Path:
        return self.logs / "fermix.log"

    @property
    def lease(self) -> Path:
        return self.root / "run.lock"

    @property
    def groups(self) -> Path:
        """The ledger of process groups, swept at start."""
        return self.root / "run.groups"

    @property
    def pid_file(self) -> Path:
        return self.root / "fermix.pid"

    @property
    def kept(self) -> Path:
        """Second names of the files a running daemon is found by."""
        return self.root / ".kept"

    @property
    def chat_history(self) -> Path:
        """What the person typed at the chat's prompt (0600)."""
        return self.root / "chat_history"

    @property
    def api_token(self) -> Path:
        """The token of HTTP for programs of this machine (0600)."""
        return self.root / "api-token"

    @property
    def tokens(self) -> Path:
        """Names and hashes of the tokens of devices (0600)."""
        return self.root / "tokens.toml"

    @property
    def sign_ins(self) -> Path:
        """Tokens of the vendors one has signed in to (0600)."""
        return self.root / "auth.json"

    @property
    def service_environment(self) -> Path:
        """Variables of the service unit (0600)."""
        return self.root / "service.env"

    @property
    def socket(self) -> Path:
        return self.root / "daemon.sock"
