"""The agent of the settings, and the next one when they change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from fermix.agent.classify import Toolsets
from fermix.agent.composer import Composer
from fermix.agent.context.estimate import Estimator
from fermix.agent.context.keeper import ContextKeeper
from fermix.agent.context.room import result_limit
from fermix.agent.loop import Agent
from fermix.agent.pictures import Album
from fermix.agent.present import PresentAgent
from fermix.agent.settings import AgentSettings
from fermix.capabilities.context import ToolContext
from fermix.capabilities.invoke import invoke
from fermix.capabilities.registry import Registry
from fermix.capabilities.turn import TurnFacts
from fermix.daemon.pins import Pins
from fermix.daemon.reload import Commit, LiveSettings
from fermix.daemon.sections import Settings
from fermix.errors import FermixError, SecretMissing
from fermix.messages import Image, Pin, ToolCall, ToolMessage
from fermix.providers.build import build_chain
from fermix.providers.chain import Chain
from fermix.providers.port import Provider
from fermix.providers.settings import LOCAL, ProviderSettings
from fermix.providers.vendors.vendor import Parts
from fermix.secret import Secret
from fermix.secrets import SecretStores
from fermix.tasks import Deadline

log = logging.getLogger(__name__)

WORDS_TAKEN = "Your files of instructions were read anew."
MARGIN_S = 60.0
"""How much longer than a turn may run a provider waits for its last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """What agents are made of beside the settings."""

    registry: Registry
    redact: Callable[[str], str]
    open_stores: Callable[[Settings], SecretStores]
    vendor_parts: Callable[[Settings, Callable[[str], Secret]], Parts]
    """What a vendor is given, with what resolves its secrets."""
    compose: Callable[[AgentSettings], Composer]
    """The instructions, with the owner's files as they are now."""
    read_pictures: Callable[[Sequence[Image]], Mapping[str, bytes]]
    """The bytes by path of those that can be shown."""
    keep_result: Callable[[ToolCall, TurnFacts, str], str]
    """Store the whole of a long tool result; its id, an empty one when that failed."""


class Agents:
    """Makes the agent; where its settings change, makes the next one before the present one leaves."""

    def __init__(self, live: LiveSettings, materials: Materials) -> None:
        """Raises: ProviderError when the settings name no provider that can be asked."""
        self._live = live
        self._materials = materials
        self._stores = materials.open_stores(live.now)
        self._estimator = Estimator()
        self._toolsets = Toolsets()
        composer = materials.compose(live.now.agent)
        self.chain = self._chain(live.now)
        self.present = PresentAgent(self._agent(live.now, self.chain, composer))
        self.pins = Pins(
            chain=lambda: self.chain,
            build=self._alone,
            agent=lambda provider: self._agent(live.now, provider, self.present.agent.composer),
            patience_s=lambda: live.now.gateway.turn_timeout_s + MARGIN_S,
        )

    @property
    def provider(self) -> Provider:
        """Who answers the next turn."""
        return self.present.agent.provider

    def lent(self, pin: Pin | None) -> AbstractContextManager[Agent]:
        """The agent for one turn, with the model its message asks for."""
        return self.present.lent() if pin is None else self._pinned(pin)

    def stop(self, timeout_s: float) -> None:
        """Stop every provider there is."""
        deadline = Deadline.after(timeout_s)
        self.present.stop(timeout_s)
        self.pins.stop(deadline.remaining_s())

    def secret(self, reference: str) -> Secret:
        """The secret behind `@secret:NAME`, as its store has it now."""
        return self._stores.resolve(reference)

    def prepare(self, settings: Settings) -> Commit:
        """A step of a reload: everything that may fail is made here, and taken by the commit.

        A provider whose settings are the same stays; turns that run keep what they began with. Secrets
        are looked up anew where they can be, since stores may remember what has changed behind their backs.
        Raises: ProviderError, or why the key of a changed provider cannot be had.
        """
        before, agent = self._live.now, self.present.agent
        stores = self._materials.open_stores(settings)
        composer = self._materials.compose(settings.agent)
        is_other = _answering(settings) != _answering(before)
        try:
            _look_for_key(settings, stores)
        except FermixError as error:
            if is_other:
                raise
            if isinstance(error, SecretMissing) or settings.secrets != before.secrets:
                log.warning("Provider %s goes on without its key: %s", self.provider.name, error)
            else:  # a keyring may be locked by now; what the present stores remember of it still counts
                stores = self._stores
                log.warning("Secrets are not looked up anew: %s", error)
        chain = self._chain(settings) if is_other else self.chain
        if is_other:
            agent = self._agent(settings, chain, composer)
        elif (settings.agent, settings.budget) != (before.agent, before.budget) or (
            composer.bootstrap != agent.composer.bootstrap
        ):
            agent = self._agent(settings, self.provider, composer)
            agent.has_noticed = self.present.agent.has_noticed
        patience_s = max(settings.gateway.turn_timeout_s, before.gateway.turn_timeout_s) + MARGIN_S

        are_words_new = composer.bootstrap != self.present.agent.composer.bootstrap

        def commit() -> str | None:
            self._stores = stores
            self.chain = chain
            chain.look_again()
            self.present.replace(agent, patience_s=patience_s)
            self.pins.clear()
            return WORDS_TAKEN if are_words_new else None

        return commit

    def _chain(self, settings: Settings) -> Chain:
        parts = self._materials.vendor_parts(settings, self.secret)
        return build_chain(settings.provider, settings.providers, parts=parts)

    @contextmanager
    def _pinned(self, pin: Pin) -> Iterator[Agent]:
        with self.present.lent(), self.pins.lent(pin) as agent:
            yield agent

    def _alone(self, name: str, model: str) -> Chain:
        """A provider by itself, as a message names it."""
        settings = self._live.now
        alone = ProviderSettings(name=name, model=model or None)
        return build_chain(
            alone, settings.providers, parts=self._materials.vendor_parts(settings, self.secret)
        )

    def _agent(self, settings: Settings, provider: Provider, composer: Composer) -> Agent:
        materials = self._materials

        def run(call: ToolCall, context: ToolContext) -> ToolMessage:
            return invoke(
                call,
                context,
                registry=materials.registry,
                redact=materials.redact,
                result_limit_bytes=result_limit(provider.limits, settings.agent.tool_result_limit_bytes),
                keep=materials.keep_result,
            )

        return Agent(
            provider,
            materials.registry,
            invoke=run,
            settings=settings.agent,
            composer=composer,
            album=Album(materials.read_pictures),
            budget=settings.budget,
            toolsets=self._toolsets,
            keeper=ContextKeeper(
                self._estimator,
                threshold=settings.agent.compaction_threshold,
                history_messages=settings.agent.history_messages,
            ),
        )


def _answering(settings: Settings) -> tuple[object, ...]:
    """The settings that the provider in force is made from."""
    names = (settings.provider.name, *settings.provider.fallback)
    tables = tuple(settings.providers.get(name) for name in names)
    return settings.provider, tables, LOCAL in names and settings.local_model


def _look_for_key(settings: Settings, stores: SecretStores) -> None:
    """Raises: what the stores say when the key of a provider in the chain cannot be had."""
    for name in (settings.provider.name, *settings.provider.fallback):
        table = settings.providers.get(name)
        if table is not None and table.api_key:
            stores.resolve(table.api_key)
