"""What people, models and tools say to each other, as plain values."""

from fermix.messages.chat import (
    AssistantMessage,
    ChatMessage,
    Image,
    ModelCall,
    NativeReply,
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
    "Image",
    "Inbound",
    "ModelCall",
    "NativeReply",
    "ToolCall",
    "ToolMessage",
    "Usage",
    "UserMessage",
]
