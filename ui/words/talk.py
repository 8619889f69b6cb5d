"""The words of the conversation and the line above it: name -> (English,
Chinese). {name} in a text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "context": ("Context used: {used} of {limit} tokens", "已用上下文：{used} / {limit} 个 token"),
    "ready": ("Ready", "就绪"),
    "loading": ("Loading", "正在加载"),
    "missing": ("Not on this machine", "本机没有此模型"),
    "failed": ("Can’t answer", "无法回答"),
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
}
# names that scripts put together from pieces
COMPUTED = frozenset(["ready", "loading", "missing", "failed"])
