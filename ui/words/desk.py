"""The words of the place where one writes, of what is laid over the page from there, and the greeting of an
empty chat: name -> (English, Chinese). {name} in a text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "ask": ("Write a message", "输入消息"),
    "ask_file": ("Ask about the files", "就这些文件提问"),
    "send": ("Send", "发送"),
    "send_later": ("Send when this answer has ended", "本次回答结束后发送"),
    "stop": ("Stop", "停止"),
    "keys": (
        "Enter sends, Shift+Enter starts a new line, / anywhere else jumps to this box",
        "Enter 发送，Shift+Enter 换行，在别处按 / 跳到输入框",
    ),
    "again": ("Try again", "重试"),
    "dismiss": ("Dismiss", "关闭"),
    "hello": ("A blank page.", "空白的一页。"),
    "hello_text": (
        "Write the first line. Nothing you write leaves this machine.",
        "写下第一句话。你写的一切都留在本机。",
    ),
    "starter_tiny": (
        "The starter model is tiny and often wrong, most of all outside English.",
        "入门模型非常小，经常出错，英语以外的语言尤其如此。",
    ),
    "starter_larger": ("Get a larger one", "换用更大的模型"),
    "try_1": ("Explain how a book is bound", "解释一本书是怎样装订的"),
    "try_2": ("Write a short poem about rain", "写一首关于雨的短诗"),
    "try_3": ("Give me three ideas for dinner", "给我三个晚餐建议"),
    "wait_loading": (
        "{what}{percent}. You can already write; it answers as soon as it is ready.",
        "{what}{percent}。现在就可以输入，就绪后会立即回答。",
    ),
    # files
    "files": ("Attached files", "附件"),
    "attach": ("Attach files (Ctrl+U)", "添加附件（Ctrl+U）"),
    "drop": ("Drop files to attach them: text, code, PDF, Word", "松开即可添加附件：文本、代码、PDF、Word"),
    "file_reading": ("reading…", "正在读取…"),
    "file_remove": ("Remove", "移除"),
    "file_failed": (
        "{name} could not be sent: it is a folder, or it was moved or changed meanwhile.",
        "无法上传 {name}：它是文件夹，或在此期间被移动或修改。",
    ),
    "file_large": (
        "{name} has {size}; at most {most} are taken. Attach a part of it.",
        "{name} 大小为 {size}，上限为 {most}。请只添加其中一部分。",
    ),
    "files_many": (
        "These would be {count} files; a message takes at most {most}. None was added.",
        "共 {count} 个文件，而一条消息最多 {most} 个。未添加任何文件。",
    ),
    "file_page": ("{count} pages", "{count} 页"),
    "file_page_1": ("1 page", "1 页"),
    "file_line": ("{count} lines", "{count} 行"),
    "file_line_1": ("1 line", "1 行"),
    "file_paragraph": ("{count} paragraphs", "{count} 段"),
    "file_paragraph_1": ("1 paragraph", "1 段"),
    "file_page_part": ("page {runs} of {count} fits best", "最相关：第 {runs} 页，共 {count} 页"),
    "file_page_parts": ("pages {runs} of {count} fit best", "最相关：第 {runs} 页，共 {count} 页"),
    "file_line_part": ("line {runs} of {count} fits best", "最相关：第 {runs} 行，共 {count} 行"),
    "file_line_parts": ("lines {runs} of {count} fit best", "最相关：第 {runs} 行，共 {count} 行"),
    "file_paragraph_part": ("paragraph {runs} of {count} fits best", "最相关：第 {runs} 段，共 {count} 段"),
    "file_paragraph_parts": ("paragraphs {runs} of {count} fit best", "最相关：第 {runs} 段，共 {count} 段"),
    "file_whole": ("read whole", "全文"),
    "file_none": ("left out: other parts fit better", "未采用：其他部分更相关"),
    "file_blank": ("{blank} without text", "{blank} 页没有文字"),
    # dictation
    "dictate": ("Dictate", "语音输入"),
    "dictate_how": (
        "Dictate. Your browser turns speech into text; some send your voice to their maker for that.",
        "语音输入。语音由浏览器转为文字；有些浏览器会为此把语音发送给其厂商。",
    ),
    "mic_denied": (
        "The browser has no microphone, or this page may not use it. Allow it in the browser’s settings.",
        "浏览器没有可用的麦克风，或本页无权使用。请在浏览器设置中允许。",
    ),
    "mic_network": (
        "This browser turns speech into text on its maker’s servers, and could not reach them.",
        "此浏览器依靠其厂商的服务器识别语音，目前无法连接。",
    ),
    "mic_failed": ("The browser could not turn this into text. Try again.", "浏览器未能识别语音，请重试。"),
    "draft_unkept": (
        "This browser keeps no drafts now: it has no room for them, or denies it. What you write stays as "
        "long as this page is open.",
        "此浏览器目前不保存草稿：空间不足或已禁用存储。你写的内容只在本页打开期间保留。",
    ),
    # what it would cost, and what does not fit
    "cost": (
        "≈ {tokens} tokens · first word in about {seconds} s",
        "约 {tokens} 个 token · 约 {seconds} 秒后出字",
    ),
    "cost_cached": (
        "≈ {tokens} tokens · {cached} cached · first word in about {seconds} s",
        "约 {tokens} 个 token · 已缓存 {cached} · 约 {seconds} 秒后出字",
    ),
    "fit_over": (
        "With this message the chat has {tokens} tokens; {limit} fit. Nothing is cut in silence: have the "
        "older part summed up, or write less.",
        "加上这条消息，对话共 {tokens} 个 token，上限为 {limit}。不会悄悄截断：可概括较早部分，或缩短消息。",
    ),
    "fit_long": (
        "This message makes {tokens} tokens; {limit} fit. Write less, or attach a part.",
        "这条消息使总数达到 {tokens} 个 token，上限为 {limit}。请缩短，或只附上一部分。",
    ),
    "fit_tight": (
        "About {left} tokens are left for the answer. The older part of the chat can be summed up.",
        "留给回答的约有 {left} 个 token。可将对话较早部分概括。",
    ),
    "fit_little": ("About {left} tokens are left for the answer.", "留给回答的约有 {left} 个 token。"),
    "sum_up": ("Sum up", "概括"),
    "summing": (
        "Summing up {count} older messages: {tokens} tokens so far",
        "正在概括较早的 {count} 条消息：已生成 {tokens} 个 token",
    ),
    "summed": (
        "{count} older messages are summed up for the model. You still see them all.",
        "较早的 {count} 条消息已为模型概括，你仍能看到全部内容。",
    ),
    "context_title": ("Context", "上下文"),
    "context_text": (
        "This chat takes {used} of {limit} tokens: {left} are left for your next message and its answer. "
        "When they are used up nothing is cut in silence; you decide.",
        "本对话已用 {used} / {limit} 个 token，剩余 {left} 个。用完时不会悄悄截断，由你决定。",
    ),
    "context_older": (
        "Next to be summed up: the oldest {count} messages that the model still reads word by word.",
        "接下来可概括：模型仍逐字读取的最早 {count} 条消息。",
    ),
    "context_new": (
        "There is no older part to sum up yet.",
        "目前没有可概括的较早部分。",
    ),
    "context_summed": (
        "For the model, this stands for the first {count} messages:",
        "对模型而言，以下内容代替最初的 {count} 条消息：",
    ),
    "undo_summary": ("Give all messages again", "恢复全部消息"),
    # shortcuts
    "shortcuts": ("Shortcuts", "快捷键"),
    "key_send": ("Send the message", "发送消息"),
    "key_line": ("Start a new line", "换行"),
    "key_stop": ("Stop the answer, close what is open", "停止回答，关闭弹出内容"),
    "key_edit": ("Edit your last message, where nothing is written", "输入框为空时，编辑上一条消息"),
    "key_write": ("Go to the writing place", "跳到输入框"),
    "key_new": ("New chat", "新对话"),
    "key_search": ("Search the chats", "搜索对话"),
    "key_list": ("Show or hide the chats", "显示或隐藏对话列表"),
    "key_copy": ("Copy the last answer", "复制最后一个回答"),
    "key_attach": ("Attach files", "添加附件"),
    "key_help": ("Show this list", "显示此列表"),
}
# names that scripts put together from pieces
COMPUTED = frozenset(
    ["try_1", "try_2", "try_3"]
    + [f"file_{unit}{end}" for unit in ("page", "line", "paragraph") for end in ("", "_1", "_part", "_parts")]
    + [name for name in WORDS if name.startswith("key_")]
)
