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
from fermix.messages.pin import Pin, pin_of

__all__ = [
    "AssistantMessage",
    "Attachment",
    "ChatMessage",
    "ConversationKey",
    "Image",
    "Inbound",
    "ModelCall",
    "NativeReply",
    "Pin",
    "ToolCall",
    "ToolMessage",
    "Usage",
    "UserMessage",
    "pin_of",
]
