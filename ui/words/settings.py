"""The words of the page of settings: name -> (English, Chinese). {name} in a text is a place for a value.

set_NAME and set_NAME_text are a setting's label and what it does, by its name in settings.toml.
"""

from __future__ import annotations

FIELDS: dict[str, tuple[str, str]] = {
    "set_system_prompt": ("System prompt", "系统提示词"),
    "set_system_prompt_text": (
        "What every new chat tells the model first. Empty: the model’s own words.",
        "每个新对话最先告诉模型的话。留空则用模型自带的提示词。",
    ),
    "set_context_length": ("Longest chat, in tokens", "对话长度上限（token）"),
    "set_context_length_text": (
        "From 512. Empty: what fits into memory.",
        "至少 512；留空则取内存容得下的长度。",
    ),
    "set_num_chats": ("Chats at once", "同时对话数"),
    "set_num_chats_text": (
        "For so many chats of full length memory is set aside, which is room for more short ones. What is "
        "beyond it waits or shares.",
        "为这么多个完整长度的对话预留内存，较短的可容纳更多；超出的等待或共享。",
    ),
    "set_keep_alive": ("Unload an idle model after this many minutes", "模型闲置多少分钟后卸载"),
    "set_keep_alive_text": (
        "0: it stays. It comes back by itself with the next message.",
        "0 表示不卸载。发送下一条消息时自动加载。",
    ),
    "set_keep_free": ("Keep free for other programs, in GB", "为其他程序保持空闲（GB）"),
    "set_keep_free_text": (
        "The pool of a loaded model shrinks and grows to leave this much. 0: as planned.",
        "已加载模型的内存池会随之缩小或增大。0 表示按计划。",
    ),
    "set_threads": ("Processor threads", "处理器线程数"),
    "set_threads_text": (
        "Empty: the cores, less one of more than four.",
        "留空则用核心数，超过四核时少用一个。",
    ),
    "set_models_quota": ("Disk space for models, in GB", "模型可用的磁盘空间（GB）"),
    "set_models_quota_text": ("0: as much as there is room for.", "0 表示不限。"),
    "set_cache_quota": ("Disk space for what chats leave in memory, in GB", "对话内存块可用的磁盘空间（GB）"),
    "set_cache_quota_text": (
        "So that a long chat goes on at once after a restart. 0: nothing is written. Empty: a tenth of the "
        "free disk, at most 20 GB.",
        "使长对话在重启后能立即继续。0 表示不写入磁盘；留空：可用磁盘的十分之一，最多 20 GB。",
    ),
    "set_offline": ("Offline", "离线"),
    "set_offline_text": (
        "Octavo asks nothing of the net, not even when you search for models.",
        "Octavo 不访问网络，搜索模型时也不例外。",
    ),
    "set_hub": ("Model hub", "模型站点"),
    "set_hub_text": ("Where models are looked for and fetched from.", "搜索和下载模型的地址。"),
    "set_proxy": ("Proxy", "代理"),
    "set_proxy_text": (
        "As http://127.0.0.1:3128. Empty: as the system’s environment says.",
        "例如 http://127.0.0.1:3128。留空则按系统环境。",
    ),
    "set_api": ("Serve the API", "提供 API"),
    "set_api_text": (
        "Programs on this machine may use the models at {address}, in OpenAI’s form, with the key below.",
        "本机程序可凭下面的密钥，以 OpenAI 的格式通过 {address} 使用模型。",
    ),
    "set_port": ("Port", "端口"),
    "set_port_text": (
        "Page and API are served there, on this machine only.",
        "页面和 API 的端口，仅限本机。",
    ),
}
WORDS: dict[str, tuple[str, str]] = {
    **FIELDS,
    "settings": ("Settings", "设置"),
    "set_look": ("Appearance", "外观"),
    "set_language": ("Language", "语言"),
    "set_language_auto": ("As the browser", "跟随浏览器"),
    "set_chat": ("Chats", "对话"),
    "set_memory": ("Memory and disk", "内存与磁盘"),
    "set_net": ("Network", "网络"),
    "set_api_card": ("API and address", "API 与地址"),
    "set_key": ("API key", "API 密钥"),
    "set_key_show": ("Show", "显示"),
    "set_key_hide": ("Hide", "隐藏"),
    "set_key_renew": ("Renew", "更换"),
    "set_key_renew_title": ("Renew the key?", "更换密钥？"),
    "set_key_renew_text": (
        "Programs that use the old one are kept out until they have the new one.",
        "使用旧密钥的程序在换上新密钥之前无法访问。",
    ),
    "set_copied": ("Copied", "已复制"),
    "set_auto": ("auto", "自动"),
    "set_saved": ("Saved", "已保存"),
    "set_load": ("Counts from the next time the model is loaded.", "下次加载模型时生效。"),
    "set_start": ("Counts when Octavo starts again.", "重新启动 Octavo 后生效。"),
    "set_data": ("Your data", "你的数据"),
    "set_data_text": (
        "Chats, settings, keys and models lie in this folder, and nowhere else.",
        "对话、设置、密钥和模型都在此文件夹中，别处没有。",
    ),
    "set_move": ("How to move it", "如何移动"),
    "set_move_text": (
        "Quit Octavo, move the folder, and set the environment variable OCTAVO_HOME to its new place. On the "
        "next start everything is there.",
        "退出 Octavo，移动该文件夹，把环境变量 OCTAVO_HOME 设为新位置；下次启动时一切照旧。",
    ),
    "set_updates": ("Updates", "更新"),
    "set_updates_text": (
        "Octavo never looks for updates by itself, and sends nothing about you or your machine.",
        "Octavo 从不自行检查更新，也不发送任何关于你或本机的信息。",
    ),
    "set_about": ("About", "关于"),
    "set_version": ("Octavo", "Octavo"),
    "set_about_model": ("Model", "模型"),
    "set_kernels": ("Kernels", "计算内核"),
    "set_system": ("System", "系统"),
    "set_licences": ("Licences of all packages", "所有软件包的许可证"),
    "set_diagnostics": ("Diagnostics for somebody who helps", "诊断信息"),
    "set_diagnostics_text": (
        "A zip file: versions, memory plan, settings, the last lines of the log. No chats, no keys, no names "
        "of your folders.",
        "一个 zip 文件：版本、内存分配、设置、日志末尾。不含对话、密钥和文件夹名称。",
    ),
    "set_diagnostics_save": ("Save the file", "保存文件"),
    "set_end": ("Restart or quit", "重启或退出"),
    "set_end_text": (
        "Answers that run are ended, and what there is of them is kept. Private chats are gone for good.",
        "正在生成的回答会停止，已生成的部分会保留。私密对话会彻底消失。",
    ),
    "set_restart": ("Restart Octavo", "重启 Octavo"),
    "set_quit": ("Quit Octavo", "退出 Octavo"),
    "set_restart_title": ("Restart Octavo?", "重启 Octavo？"),
    "set_quit_title": ("Quit Octavo?", "退出 Octavo？"),
    "set_quit_done": ("Octavo is ending. You can close this tab.", "Octavo 正在退出，可以关闭此标签页。"),
    "set_restart_done": (
        "Octavo starts again. This page comes back by itself.",
        "Octavo 正在重启，本页会自动恢复。",
    ),
    "set_restart_moved": (
        "Octavo starts again at another port. In a few seconds its page is here:",
        "Octavo 将在另一个端口重启，几秒后可在此打开：",
    ),
}
# names that scripts put together from pieces
COMPUTED = frozenset([*FIELDS, "settings", "set_chat", "set_memory", "set_net"]).union(
    f"set_{what}{end}" for what in ("restart", "quit") for end in ("", "_title", "_done")
)
