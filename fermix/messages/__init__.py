"""What people, models and tools say to each other, as plain values."""

from fermix.messages.chat import (
    AssistantMessage,
    ChatMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from fermix.messages.inbound import Attachment, ConversationKey, Inbound

__all__ = [
    "AssistantMessage",
    "Attachment",
    "ChatMessage",
    "ConversationKey",
    "Inbound",
    "ToolCall",
    "ToolMessage",
    "Usage",
    "UserMessage",
]
