"""Providers and the turn: every model, its failures, its window and its price."""
