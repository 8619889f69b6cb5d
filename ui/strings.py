"""Every word the page says, in English with the Chinese beside it. The page picks a language in the browser
(early.js).

{name} is a place for a value. Sentences made by the app and the engine (errors, status) come in English.
"""

from __future__ import annotations

LANGUAGES = ("en", "zh")

# name -> (English, Chinese)
STRINGS: dict[str, tuple[str, str]] = {
    # the list of chats
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
    "theme": ("Theme", "主题"),
    "theme_light": ("Light", "浅色"),
    "theme_dark": ("Dark", "深色"),
    "theme_system": ("System", "跟随系统"),
    # the line above a conversation
    "context": ("Context used: {used} of {limit} tokens", "已用上下文：{used} / {limit} 个 token"),
    "ready": ("Ready", "就绪"),
    "loading": ("Loading", "正在加载"),
    "missing": ("Not on this machine", "本机没有此模型"),
    "failed": ("Can’t answer", "无法回答"),
    # the conversation
    "conversation": ("Conversation", "对话内容"),
    "you": ("You", "你"),
    "answer": ("Answer", "回答"),
    "earlier": ("Show earlier messages ({count})", "显示更早的消息（{count}）"),
    "copy": ("Copy", "复制"),
    "retry": ("Try again", "重新回答"),
    "speed": ("{value} tokens/s", "{value} token/秒"),
    "first": ("first token {value} s", "首个 token {value} 秒"),
    "cached": ("{cached} of {prompt} prompt tokens cached", "提示中 {cached} / {prompt} 个 token 来自缓存"),
    "stopped": ("stopped", "已停止"),
    "interrupted": ("cut off: Octavo was closed", "已中断：Octavo 被关闭"),
    "cut": ("cut at the length limit", "达到长度上限"),
    "to_end": ("Go to the newest message", "跳到最新消息"),
    # where one writes
    "ask": ("Write a message", "输入消息"),
    "send": ("Send", "发送"),
    "stop": ("Stop", "停止"),
    "keys": (
        "Enter sends, Shift+Enter starts a new line, / anywhere else jumps to this box",
        "Enter 发送，Shift+Enter 换行，在别处按 / 跳到输入框",
    ),
    "again": ("Try again", "重试"),
    "dismiss": ("Dismiss", "关闭"),
    "hello": ("A blank page.", "空白的一页。"),
    "hello_text": (
        "Write the first line. Nothing you say leaves this machine.",
        "写下第一句话。你说的一切都留在本机。",
    ),
    "try_1": ("Explain how a book is bound", "解释一本书是怎样装订的"),
    "try_2": ("Write a short poem about rain", "写一首关于雨的短诗"),
    "try_3": ("Give me three ideas for dinner", "给我三个晚餐建议"),
    "wait_loading": (
        "The model is loading{percent}. You can already write; it answers as soon as it is ready.",
        "模型正在加载{percent}。现在就可以输入，就绪后会立即回答。",
    ),
    # where someone comes without the link (locked.py)
    "locked": ("This page is locked.", "此页面已上锁。"),
    "locked_text": (
        "Octavo opens it with a link that works once, within a minute; a browser that came in stays in.",
        "Octavo 用一次性链接打开此页面，链接一分钟内有效；进入过的浏览器可一直使用。",
    ),
    "locked_how": (
        "For a new link, run this in Octavo’s folder. It does not disturb an Octavo that is running.",
        "要获得新链接，请在 Octavo 的文件夹中运行以下命令。如果 Octavo 已在运行，则不受影响。",
    ),
    "unreachable": (
        "Octavo does not answer. If it was closed, start it again; this page then goes on by itself.",
        "Octavo 没有响应。如果已关闭，请重新启动，本页会自动恢复。",
    ),
}


def words() -> dict[str, dict[str, str]]:
    """The whole table by language, as the browser gets it."""
    return {
        language: {name: texts[place] for name, texts in STRINGS.items()}
        for place, language in enumerate(LANGUAGES)
    }
