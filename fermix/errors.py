"""Every error fermix raises on purpose, in one tree, split by who must read it.

FermixError                  has a stable `code`, a message and a `hint` (the command that repairs it)
├── OwnerError               the owner reads it: CLI, log, health
│   ├── UsageError           exit 2; UploadUnknown · ClientIdTaken · ModelPinRefused
│   ├── NotRunning           exit 3
│   ├── DaemonLost           the daemon went away in the middle of an answer
│   ├── ConfigError          SettingUnknown · SettingInvalid · ConfigChanged · SecretMissing · HomeUnsafe
│   ├── LeaseHeld            another fermix serves this home
│   ├── NotReady             the daemon starts and takes no messages yet
│   ├── Draining             the daemon stops and takes no more messages
│   ├── QueueFull            a conversation has too many messages waiting
│   ├── SessionUnknown       no session has this name
│   ├── SessionBusy          a session cannot be deleted while this goes on in it
│   ├── ModelUnknown         no model has this name
│   ├── ModelUnusable        a file is no model that can be loaded
│   ├── DownloadFailed       a file could not be fetched
│   ├── TokenUnknown         no device token has this name
│   ├── SignInMissing        nobody is signed in at this vendor
│   ├── SignInEnded          the vendor took a sign-in back
│   ├── SignInFailed         a sign-in did not come to its end
│   ├── IssuerBusy           who renews a sign-in cannot do so for now
│   ├── RestartsExceeded     a part of the daemon failed too often
│   ├── AddressUnavailable   an address or socket path fermix must listen on cannot be used
│   ├── StoreError           StoreFull · StoreBusy · StoreFailing · StoreGone · StoreCorrupt ·
│   │                        SchemaNewer · StoreClosed
│   ├── ProtocolError        a frame or request on the control socket was refused
│   ├── ServiceError             ServiceMissing · ServiceForeign · ManagerUnreachable · ManagerRefused
│   ├── HelperFailed         a helper process did not start, or ended without being told to
│   └── ProviderError        a model provider cannot be used at all
├── ModelError               the model reads it as a tool result
│   ├── ToolFailed           it ran and did not work
│   ├── ToolDenied           it may not run
│   └── ToolRetry            the arguments were wrong; try again with others
└── FlowError                the code reads it
    ├── Cancelled            a turn was stopped on purpose
    ├── DeadlineExceeded     a wait came to its end
    ├── NetworkError         Unreachable · ConnectionLost · RedirectRefused · ResponseTooLarge ·
    │                        AddressRefused
    └── Unreadable           a provider's bytes are not what its protocol says
"""

from __future__ import annotations


class FermixError(Exception):
    """An expected failure: what happened, then what was expected or available."""

    code = "error"
    exit_status = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class OwnerError(FermixError):
    """A failure the owner can understand and repair."""

    code = "failed"


class UsageError(OwnerError):
    """The command line does not say what to do."""

    code = "usage"
    exit_status = 2


class UploadUnknown(UsageError):
    """No upload has this id, or a message has taken it already."""

    code = "upload_unknown"


class ClientIdTaken(UsageError):
    """A message with this id was sent before, and this is another one."""

    code = "client_id_taken"


class ModelPinRefused(UsageError):
    """A message asks for a model or a level of thinking that cannot be had."""

    code = "model_refused"


class NotRunning(OwnerError):
    """No daemon answers on this home's socket."""

    code = "not_running"
    exit_status = 3


class DaemonLost(OwnerError):
    """The daemon closed the control socket before it had answered."""

    code = "daemon_lost"


class ConfigError(OwnerError):
    """The configuration cannot be used as it stands."""

    code = "config"


class SettingUnknown(ConfigError):
    """A key in config.toml that no part of fermix declares."""

    code = "setting_unknown"


class SettingInvalid(ConfigError):
    """A setting's value is not of the declared kind or range."""

    code = "setting_invalid"


class ConfigChanged(ConfigError):
    """config.toml was changed by someone else between our read and our write."""

    code = "config_changed"


class SecretMissing(ConfigError):
    """A secret is named but no store holds it."""

    code = "secret_missing"


class HomeUnsafe(ConfigError):
    """A file of the home has an owner or mode that would let others read or change it."""

    code = "home_unsafe"


class LeaseHeld(OwnerError):
    """Another fermix process serves this home."""

    code = "lease_held"


class NotReady(OwnerError):
    """The daemon is starting and takes nothing yet."""

    code = "not_ready"


class Draining(OwnerError):
    """The daemon is on its way out and takes nothing new."""

    code = "draining"


class QueueFull(OwnerError):
    """A conversation has too many messages waiting."""

    code = "queue_full"


class SessionUnknown(OwnerError):
    """No session has this name."""

    code = "session_unknown"


class SessionBusy(OwnerError):
    """A session cannot be deleted: a turn in it does not stop, or it is being deleted already."""

    code = "session_busy"


class TokenUnknown(OwnerError):
    """No device token has this name."""

    code = "token_unknown"


class ModelUnknown(OwnerError):
    """No model has this name."""

    code = "model_unknown"


class ModelUnusable(OwnerError):
    """A file is no model that can be loaded, or not the one that was promised."""

    code = "model_unusable"


class DownloadFailed(OwnerError):
    """A file could not be fetched to its end."""

    code = "download_failed"


class SignInMissing(OwnerError):
    """A provider that is signed in to, and nobody is."""

    code = "sign_in_missing"


class SignInEnded(OwnerError):
    """The vendor renews a sign-in no more: it ran out, or was taken back."""

    code = "sign_in_ended"


class SignInFailed(OwnerError):
    """A sign-in was refused, or nobody finished it in time."""

    code = "sign_in_failed"


class IssuerBusy(OwnerError):
    """Whoever renews a sign-in cannot be reached or has no time; the sign-in stays."""

    code = "issuer_busy"


class RestartsExceeded(OwnerError):
    """A part of the daemon failed too often in a short time; its supervisor gave up."""

    code = "restarts_exceeded"


class AddressUnavailable(OwnerError):
    """An address or socket path fermix must listen on cannot be used."""

    code = "address_unavailable"


class StoreError(OwnerError):
    """The database refused."""

    code = "store"


class StoreFull(StoreError):
    """The disk has no room for the database to grow."""

    code = "store_full"


class StoreBusy(StoreError):
    """Another process holds the database."""

    code = "store_busy"


class StoreFailing(StoreError):
    """The disk or the file of the database refuses; nothing of the write was kept."""

    code = "store_failing"


class StoreGone(StoreError):
    """The database was removed or replaced while it was open."""

    code = "store_gone"


class StoreCorrupt(StoreError):
    """The database file is damaged."""

    code = "store_corrupt"


class SchemaNewer(StoreError):
    """The database was written by a newer fermix than this one."""

    code = "schema_newer"


class StoreClosed(StoreError):
    """The database was asked for something after it was stopped."""

    code = "store_closed"


class ProtocolError(OwnerError):
    """A frame or request on the control socket that cannot be served."""

    code = "protocol"

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        if code is not None:
            self.code = code


class ServiceError(OwnerError):
    """The service of this home cannot be installed, removed or driven."""

    code = "service"


class ServiceMissing(ServiceError):
    """No service unit is installed for this home."""

    code = "service_missing"


class ServiceForeign(ServiceError):
    """A unit of that name is there which somebody else wrote, or which serves another home."""

    code = "service_foreign"


class ManagerUnreachable(ServiceError):
    """No service manager answers: systemd does not run here, or not for this user."""

    code = "manager_unreachable"


class ManagerRefused(ServiceError):
    """The service manager did not do what it was asked."""

    code = "manager_refused"


class HelperFailed(OwnerError):
    """A helper process did not start, or ended without having been told to."""

    code = "helper_failed"


class ProviderError(OwnerError):
    """A model provider that cannot be used as configured."""

    code = "provider"


class ModelError(FermixError):
    """A failure the model reads as the result of its tool call."""

    code = "tool"


class ToolFailed(ModelError):
    """The tool ran and did not work."""

    code = "tool_failed"


class ToolDenied(ModelError):
    """The tool may not run for this turn."""

    code = "tool_denied"


class ToolRetry(ModelError):
    """The arguments were wrong; the model may try again with others."""

    code = "tool_retry"


class FlowError(FermixError):
    """A planned end of waiting or working."""

    code = "flow"


class Cancelled(FlowError):
    """A turn or command was stopped on purpose."""

    code = "cancelled"


class DeadlineExceeded(FlowError):
    """A wait came to its end before the thing happened."""

    code = "deadline"


class NetworkError(FlowError):
    """An outgoing request did not come to its end."""

    code = "network"


class Unreachable(NetworkError):
    """No connection could be made; nothing was sent."""

    code = "unreachable"


class ConnectionLost(NetworkError):
    """The connection broke after it was made; the other side may have acted."""

    code = "connection_lost"


class RedirectRefused(NetworkError):
    """The other side named another address, which may not be followed."""

    code = "redirect_refused"


class ResponseTooLarge(NetworkError):
    """The response went over its limit and was dropped."""

    code = "response_too_large"


class AddressRefused(NetworkError):
    """An address that may not be reached, or is none."""

    code = "address_refused"


class Unreadable(FlowError):
    """A provider's bytes are not what its protocol says, or too many."""

    code = "provider_unreadable"


def exit_status_of(code: str) -> int:
    """What a command ends with after an error of this code, also one that came from another process."""
    waiting: list[type[FermixError]] = [FermixError]
    while waiting:
        kind = waiting.pop()
        if kind.code == code:
            return kind.exit_status
        waiting += kind.__subclasses__()
    return FermixError.exit_status
