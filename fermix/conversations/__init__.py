"""Conversations, their messages, and the latest of them in memory."""

from fermix.conversations.export import ExportPage
from fermix.conversations.histories import Histories
from fermix.conversations.records import Conversation, ConversationSummary, StoredMessage
from fermix.conversations.results import ResultStore, StoredResult
from fermix.conversations.store import ConversationStore
from fermix.conversations.summaries import Summary

__all__ = [
    "Conversation",
    "ConversationStore",
    "ConversationSummary",
    "ExportPage",
    "Histories",
    "ResultStore",
    "StoredMessage",
    "StoredResult",
    "Summary",
]
