"""The channel of people at this machine: CLI and chat, over the control socket."""

from fermix.channels.local.channel import LocalChannel

__all__ = ["LocalChannel"]
