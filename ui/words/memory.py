"""The words of the page of memory: name -> (English, Chinese). {name} in a text is a place for a value.

A block is used, cached, free or kept: mem_STATE says which.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "memory": ("Memory", "内存"),
    "mem_intro": (
        "Attention memory lies in blocks of {tokens} tokens. Chats that begin alike keep what they have in "
        "common once.",
        "注意力内存按 {tokens} 个 token 的块存放。开头相同的对话，其相同部分只存一份。",
    ),
    "mem_none": (
        "No model is in memory. It is loaded with the next message, or now.",
        "内存中没有模型。发送下一条消息时会加载，也可现在加载。",
    ),
    "mem_load": ("Load now", "立即加载"),
    "mem_unload": ("Let go of the model", "卸载模型"),
    "mem_unload_text": (
        "Gives back its weights and its pool when the answers that run have ended.",
        "正在生成的回答结束后，释放模型权重与内存池。",
    ),
    "mem_map": ("The pool, block by block", "内存池：逐块"),
    "mem_map_window": (
        "The pool of layers that see {window} tokens.",
        "只看 {window} 个 token 的层所用的内存池。",
    ),
    "mem_map_text": (
        "{total} blocks of {size}: {used} in use, {cached} kept for later, {free} free, {kept} left to "
        "others.",
        "共 {total} 块，每块 {size}：使用中 {used}，留作复用 {cached}，空闲 {free}，让给其他程序 {kept}。",
    ),
    "mem_hint": (
        "Point at a block, or walk with the arrow keys, to see whose it is.",
        "指向一个块，或用方向键移动，可查看它属于谁。",
    ),
    "mem_block": ("Block {number}", "第 {number} 块"),
    "mem_used": ("in use", "使用中"),
    "mem_cached": ("kept for later", "留作复用"),
    "mem_free": ("free", "空闲"),
    "mem_kept": ("left to other programs", "让给其他程序"),
    "mem_shared": ("shared by several chats", "多个对话共享"),
    "mem_sharers": ("shared by {count}", "{count} 个对话共享"),
    "mem_api": ("API requests", "API 请求"),
    "mem_gone": ("A chat that was deleted", "已删除的对话"),
    "mem_tiers": ("Where blocks live", "块的存放位置"),
    "mem_tiers_text": (
        "What a chat leaves behind is written to the disk while nothing is answered; when the chat goes on, "
        "even after a restart, it is read instead of computed, where that is quicker. Private chats and API "
        "requests are never written; what only a deleted chat used is deleted with it.",
        "空闲时，对话留下的块会写入磁盘；继续该对话时（即使重启后），只要更快，就直接读取而不重新计算。"
        "私密对话和 API 请求从不写入磁盘；删除对话时，仅由它使用的块也一并删除。",
    ),
    "mem_tier": ("Where", "位置"),
    "mem_tier_device": ("The pool", "内存池"),
    "mem_tier_host": ("Beside the pool", "池外内存"),
    "mem_tier_disk": ("Disk", "磁盘"),
    "mem_taken_bytes": ("Taken", "已占用"),
    "mem_most_bytes": ("At most", "上限"),
    "mem_back": ("Came back", "已取回"),
    "mem_off": ("off", "关闭"),
    "mem_clear": ("Clear the disk", "清空磁盘"),
    "mem_clear_text": (
        "Removes these blocks from the disk, not the chats: what was said is read again when a chat goes on.",
        "只从磁盘删除这些块，不影响对话；继续对话时会重新读入之前的内容。",
    ),
    "mem_cleared": ("The disk has no blocks any more.", "磁盘上已没有块。"),
    "mem_speed": ("Tokens per second", "每秒 token"),
    "mem_speed_text": (
        "Now {answers} tokens/s of answers and {prompts} of prompts, {count} at once.",
        "现在：回答 {answers} token/秒，提示 {prompts} token/秒，同时 {count} 个。",
    ),
    "mem_speed_line": (
        "{answers} of answers, {prompts} of prompts; at most {most}",
        "回答 {answers}，提示 {prompts}；最高 {most}",
    ),
    "mem_most": ("at most {most}", "最多 {most}"),
    "mem_batch": ("Answers at once", "同时生成"),
    "mem_use": ("The pool in the last three minutes", "内存池：最近三分钟"),
    "mem_use_text": ("{used} % in use, {cached} % kept for later.", "使用中 {used}%，留作复用 {cached}%。"),
    "mem_chats": ("What each chat takes", "每个对话的占用"),
    "mem_chats_text": (
        "Only chats of which something lies in the pool now, and API requests. The list of chats has all.",
        "只列出目前在内存池中有内容的对话和 API 请求；全部对话见对话列表。",
    ),
    "mem_chats_none": ("Nothing is kept yet.", "目前还没有保留任何内容。"),
    "mem_chat": ("Chat", "对话"),
    "mem_blocks": ("Blocks", "块"),
    "mem_bytes": ("Memory", "内存"),
    "mem_shares": ("Shared", "共享"),
    "mem_state": ("Now", "状态"),
    "mem_answering": ("answering", "正在回答"),
    "mem_idle": ("idle", "空闲"),
    "mem_give": ("What other programs have", "留给其他程序"),
    "mem_free_now": ("Free now", "立即释放"),
    "mem_free_now_text": (
        "Gives up what no answer uses: {size}. The chats stay; their next answers begin later, because what "
        "was said is read again.",
        "放弃当前没有回答在用的部分：{size}。对话不受影响，但下一次回答需重新读入，开始得稍慢。",
    ),
    "mem_freed": ("{size} were given back.", "已释放 {size}。"),
    "mem_freed_none": ("There was nothing to give back.", "没有可释放的内容。"),
    "mem_not_given": (
        "This system takes memory back only when the model is let go of.",
        "此系统只有在卸载模型后才能收回内存。",
    ),
    "mem_keep": ("Keep free, in GB", "保持空闲（GB）"),
    "mem_keep_text": (
        "The pool shrinks and grows so that this much stays free. One whole chat always fits. 0: as planned.",
        "内存池会随之缩小或增大，使这么多内存保持空闲；始终容得下一个完整的对话。0 表示按计划。",
    ),
    "mem_set": ("Set", "设定"),
    "mem_now_free": ("{size} of this machine’s memory are free now.", "本机现有 {size} 空闲内存。"),
    "mem_plan": ("The plan, and why", "分配计划及理由"),
    "mem_weights": ("Weights", "权重"),
    "mem_buffers": ("Buffers", "缓冲区"),
    "mem_pool": ("Pool of blocks", "块内存池"),
    "mem_taken": ("of it taken now", "其中现已占用"),
    "mem_backend": ("Kernels", "计算内核"),
}
# names that scripts put together from pieces
STATES, TIERS = ("used", "cached", "free", "kept"), ("device", "host", "disk")
COMPUTED = frozenset(
    ["memory", *(f"mem_{state}" for state in STATES), *(f"mem_tier_{tier}" for tier in TIERS)]
)
