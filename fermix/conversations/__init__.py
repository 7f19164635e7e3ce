"""Conversations, their messages, and the latest of them in memory."""

from fermix.conversations.export import ExportPage
from fermix.conversations.histories import Histories
from fermix.conversations.records import Conversation, ConversationSummary, StoredMessage
from fermix.conversations.store import ConversationStore

__all__ = [
    "Conversation",
    "ConversationStore",
    "ConversationSummary",
    "ExportPage",
    "Histories",
    "StoredMessage",
]
