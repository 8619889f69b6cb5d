"""The words of the place where one writes, and the greeting of an empty chat: name -> (English,
Chinese). {name} in a text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
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
}
# names that scripts put together from pieces
COMPUTED = frozenset(["try_1", "try_2", "try_3"])
