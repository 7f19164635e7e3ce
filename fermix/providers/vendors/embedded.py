"""The built-in model: its helper process is started at first use and ended after a quiet while."""

from __future__ import annotations

import logging
import os
import secrets as random_text
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fermix.errors import DeadlineExceeded, FermixError, HelperFailed, ProviderError
from fermix.native import Limits
from fermix.net.door import OwnerDoor
from fermix.process import Helper, HelperSpec, child_environment
from fermix.process.program import own_command, own_variables
from fermix.providers.apis.openai_chat import API
from fermix.providers.apis.wire import Route
from fermix.providers.catalog import BUILT_IN
from fermix.providers.client import HttpProvider, failed_from
from fermix.providers.gguf import facts_of
from fermix.providers.local_server import KEY_VARIABLE
from fermix.providers.port import FREE, ModelLimits, ModelRequest, StreamEvent
from fermix.providers.retry import retried
from fermix.providers.settings import LocalModelSettings
from fermix.providers.vendors.vendor import Parts
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline, Task, TaskGroup, sleep

log = logging.getLogger(__name__)

PROMPT_BYTES = 1024
_OWN_OUTPUT_TOKENS = 2048
_NICE = 10
_POLL_S = 0.02
_PASSED_VARIABLES = ("HOME", "PATH", "LANG", "LC_*", "TMPDIR", "XDG_CACHE_HOME", "LD_LIBRARY_PATH")
_OWN_VARIABLES = ("FERMIX_EXE", "FERMIX_RUNTIME_DIR", "FERMIX_HOME")


@dataclass(slots=True)
class _Running:
    """A helper that answers."""

    helper: Helper
    http: HttpProvider
    report: Path
    """Where it wrote its port."""
    users: int = 0
    used_s: float = 0.0
    """Monotonic time of the last use's end."""


def _report(folder: Path) -> Path:
    """A file of its own for a helper to write its port to; those of earlier workers are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    own = f"local-model-{os.getpid()}-"
    for left in folder.glob("local-model-*.port"):
        if not left.name.startswith(own):
            left.unlink(missing_ok=True)
    return folder / f"{own}{random_text.token_hex(4)}.port"


def _limits(local: LocalModelSettings, model_path: Path | None) -> ModelLimits:
    """Of the small model what keeps it quick; of the owner's file what the file says."""
    if model_path is None:
        return ModelLimits(
            takes_tools=False, prompt_bytes=PROMPT_BYTES, max_output_tokens=local.output_tokens
        )
    facts = facts_of(model_path)
    window = min(local.own_context_tokens, facts.window_tokens or local.own_context_tokens)
    return ModelLimits(
        takes_tools=facts.takes_tools,
        window_tokens=window,
        max_output_tokens=min(_OWN_OUTPUT_TOKENS, window // 4),
    )


class EmbeddedModel:
    """The small model that came with fermix; only its own process holds its memory."""

    def __init__(self, name: str, parts: Parts, *, model_path: Path | None = None) -> None:
        """`model_path` is a GGUF file in place of the one that came with fermix."""
        self._parts = parts
        self._model_path = model_path
        self.route = Route(
            provider=name,
            model=model_path.stem if model_path else BUILT_IN,
            price=FREE,
            limits=_limits(parts.local, model_path),
        )
        self._running: _Running | None = None
        self._starting: Task | None = None
        self._error: FermixError | None = None
        self._tasks = TaskGroup("local model")

    @property
    def is_running(self) -> bool:
        """Whether its process holds memory now."""
        return self._running is not None

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """See `Provider.stream`."""
        return retried(lambda: self._attempt(request), cancel=request.cancel, deadline=request.deadline)

    def stop(self, timeout_s: float) -> None:
        """End the helper; a later request starts it again."""
        self._tasks.stop(timeout_s)
        self._starting = None
        self._end(timeout_s)

    def _attempt(self, request: ModelRequest) -> Iterator[StreamEvent]:
        try:
            running = self._ready(request.cancel, request.deadline)
        except FermixError as error:
            yield failed_from(error, self.route.provider, is_over=request.deadline.is_over())
            return
        running.users += 1
        try:
            yield from running.http.attempt(request, request.deadline)
        finally:
            running.users -= 1
            running.used_s = self._parts.clock.monotonic_s()

    def _ready(self, cancel: Cancel, deadline: Deadline) -> _Running:
        """The running helper, started when there is none.

        A turn that is cancelled leaves the start going on: the next one will want it.
        Raises: ProviderError, Cancelled, DeadlineExceeded.
        """
        self._drop_dead()
        while self._running is None:
            if self._starting is None or self._starting.is_done:
                self._error = None
                self._starting = self._tasks.start(self._start, name="start")
            if self._starting.join(_POLL_S) and self._running is None:
                raise self._error or ProviderError(
                    "The built-in model could not be started; the log says why.", hint="fermix logs"
                )
            cancel.check()
            if deadline.is_over():
                raise DeadlineExceeded("Loading the built-in model ran out of time.")
        return self._running

    def _drop_dead(self) -> None:
        """Forget a helper that ended by itself."""
        if self._running is None:
            return
        try:
            is_gone = self._running.helper.wait(0)
        except HelperFailed as error:
            log.warning("The built-in model ended, the next use starts it again: %s", error.message)
            is_gone = True
        if is_gone:
            self._running.http.stop(0)
            self._running.report.unlink(missing_ok=True)
            self._running = None

    def _start(self) -> None:
        began_s = self._parts.clock.monotonic_s()
        key = Secret(random_text.token_hex(32))
        try:
            report = _report(self._parts.home.models)
            helper = self._parts.start_helper(self._spec(report, key))
        except (FermixError, OSError) as error:
            said = error.message if isinstance(error, FermixError) else str(error)
            self._error = ProviderError(
                f"The built-in model could not be started: {said}",
                hint="Connect another: fermix setup",
            )
            return
        door = OwnerDoor(f"http://127.0.0.1:{report.read_text().strip()}/v1", connect_timeout_s=2.0)
        http = HttpProvider(
            self.route,
            API,
            door,
            key=lambda: key,
            idle_timeout_s=120.0,
            timeout_s=600.0,
            clock=self._parts.clock,
        )
        now_s = self._parts.clock.monotonic_s()
        log.info("The built-in model is ready after %.1f s", now_s - began_s)
        self._running = _Running(helper, http, report, used_s=now_s)
        self._tasks.start(self._end_when_idle, name="idle")

    def _spec(self, report: Path, key: Secret) -> HelperSpec:
        local = self._parts.local
        cores = os.cpu_count() or 1
        # Measured: a second thread makes this small model's words hardly faster, but reading the
        # prompt twice as fast, and that is over before anyone waits for the core.
        threads = local.threads or max(1, cores // 2)
        argv = [
            *own_command(self._parts.environment),
            "_local-model",
            f"--report={report}",
            f"--context={self.route.limits.window_tokens or local.context_tokens}",
            f"--threads={min(threads, 8)}",
            f"--batch-threads={min(local.threads or cores, 16)}",
        ]
        if self._model_path is not None:
            argv.append(f"--model={self._model_path}")
        base = self._parts.environment
        own = {name: base[name] for name in _OWN_VARIABLES if name in base}
        return HelperSpec(
            name="local-model",
            argv=tuple(argv),
            environment=child_environment(
                base, _PASSED_VARIABLES, {**own, **own_variables(base), KEY_VARIABLE: key.reveal()}
            ),
            cwd=self._parts.home.models,
            is_ready=report.exists,
            ready_timeout_s=local.start_timeout_s,
            grace_s=0.5,
            limits=Limits(nice=_NICE),
        )

    def _end_when_idle(self) -> None:
        """Give the memory back once nobody asked for the set time."""
        running = self._running
        idle_s = self._parts.local.idle_minutes * 60
        while running is not None and running is self._running:
            sleep(min(5.0, idle_s / 4))
            quiet_s = self._parts.clock.monotonic_s() - running.used_s
            if running is self._running and not running.users and quiet_s >= idle_s:
                log.info("The built-in model was not used for %.0f s and is ended", quiet_s)
                self._end(5.0)

    def _end(self, timeout_s: float) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.http.stop(0)
            running.helper.stop(timeout_s)
            running.report.unlink(missing_ok=True)
