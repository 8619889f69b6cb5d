"""The words of the list of chats: name -> (English,
Chinese). {name} in a text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "chats": ("Chats", "对话"),
    "new": ("New chat", "新对话"),
    "search": ("Search titles", "搜索标题"),
    "untitled": ("New chat", "新对话"),
    "nothing_found": ("No chat has “{text}” in its title.", "没有标题包含“{text}”的对话。"),
    "today": ("Today", "今天"),
    "yesterday": ("Yesterday", "昨天"),
    "week": ("Last 7 days", "过去 7 天"),
    "older": ("Older", "更早"),
    "rename": ("Rename", "重命名"),
    "title": ("Title of the chat", "对话标题"),
    "delete": ("Delete", "删除"),
    "delete_title": ("Delete this chat?", "删除这个对话？"),
    "delete_text": ("“{title}” and its messages will be gone for good.", "“{title}”及其消息将被永久删除。"),
    "cancel": ("Cancel", "取消"),
    "answering": ("answering", "正在回答"),
    "unread": ("new answer", "有新回答"),
    "list": ("Show or hide the chats", "显示或隐藏对话列表"),
}
# names that scripts put together from pieces
COMPUTED = frozenset(["answering", "unread"])
