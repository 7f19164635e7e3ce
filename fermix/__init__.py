"""fermix: a personal, self-hosted AI agent in one binary."""

__version__ = "0.1.0"
