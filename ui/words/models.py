"""The words of the page of models, and of the first day's card: name -> (English,
Chinese). {name} in a text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "models": ("Models", "模型"),
    # looking
    "models_find": ("Search models", "搜索模型"),
    "models_hub": ("Search Hugging Face", "搜索 Hugging Face"),
    "models_searching": ("Asking the hub …", "正在查询……"),
    "models_hits": ("On Hugging Face", "Hugging Face 上的模型"),
    "models_no_hits": (
        "The hub has nothing called “{text}” that can be run here.",
        "没有找到可在此运行的“{text}”。",
    ),
    "models_back": ("Back to the catalogue", "返回目录"),
    "models_here": ("On this machine", "本机模型"),
    "models_catalogue": ("Catalogue", "目录"),
    "models_nothing": (
        "No model here is called “{text}”. The hub may have one.",
        "这里没有“{text}”，可搜索 Hugging Face。",
    ),
    "models_offline": (
        "Octavo is set to stay offline; the hub is not asked.",
        "Octavo 已设为离线，不会访问 Hugging Face。",
    ),
    # a model
    "models_parameters": ("{count} parameters", "{count} 参数"),
    "models_context": ("context {count}", "上下文 {count}"),
    "models_downloads": ("{count} downloads", "下载 {count} 次"),
    "models_licence_unknown": ("licence not stated", "许可证未注明"),
    "models_gated": ("gated", "需授权"),
    "models_gated_why": (
        "Its makers want to be asked: accept the terms on its page at the hub, then give Octavo a token.",
        "需先在 Hugging Face 页面接受条款，再提供令牌。",
    ),
    "models_about": ("about {size}", "约 {size}"),
    "models_yours": ("Used where it lies: {path}", "原位使用：{path}"),
    "models_variant": ("Variant of {name}", "{name} 的版本"),
    "models_for": ("For {purposes}", "用于{purposes}"),
    "purpose_chat": ("conversation", "对话"),
    "purpose_reasoning": ("reasoning", "推理"),
    "purpose_code": ("code", "编程"),
    "purpose_languages": ("several languages", "多语言"),
    "badge_best": ("recommended", "推荐"),
    "badge_fits": ("fits", "适合"),
    "badge_tight": ("tight", "勉强"),
    "badge_large": ("too large", "过大"),
    "badge_unserved": ("not served", "不支持"),
    # why: {said} is the engine's own sentence
    "models_ready": ("on this machine", "已在本机"),
    "models_damaged": ("damaged", "已损坏"),
    "models_in_memory": ("answers now", "正在使用"),
    "models_loading": ("loading {percent}", "正在加载 {percent}"),
    "models_next": ("comes next", "即将使用"),
    # what can be done with it
    "models_download": ("Download", "下载"),
    "models_pause": ("Pause", "暂停"),
    "models_resume": ("Resume", "继续"),
    "models_cancel": ("Cancel", "取消"),
    "models_use": ("Use", "使用"),
    "models_unload": ("Unload", "卸载"),
    "models_delete": ("Delete", "删除"),
    "models_forget": ("Take off the list", "移出列表"),
    "models_adjust": ("Adjust", "调整"),
    "models_more": ("Show sizes", "查看大小"),
    # on its way
    "download_queued": ("waits in line", "排队中"),
    "download_fetching": ("{done} of {all}", "{done} / {all}"),
    "download_checking": ("checking", "正在校验"),
    "download_waiting": ("waits for the hub; {done} of {all}", "等待服务器；{done} / {all}"),
    "download_paused": ("paused at {done} of {all}", "已暂停：{done} / {all}"),
    "download_failed": ("stopped at {done} of {all}", "已停止：{done} / {all}"),
    "download_speed": ("{speed}/s", "{speed}/秒"),
    "download_left": ("{time} left", "剩余 {time}"),
    "download_of": ("Download of {name}", "下载 {name}"),
    "models_seconds": ("{count} s", "{count} 秒"),
    "models_minutes": ("{count} min", "{count} 分钟"),
    "models_hours": ("{count} h", "{count} 小时"),
    # the disk
    "models_disk": (
        "Models take {models} of the disk; {free} of it are free.",
        "模型占用磁盘 {models}，磁盘剩余 {free}。",
    ),
    "models_no_room": (
        "It is larger than the {room} that may still be downloaded.",
        "它超过了还可下载的 {room}。",
    ),
    "models_quota": ("They may take {quota}.", "上限 {quota}。"),
    "models_packed": ("{packed} more make them load quicker.", "另有 {packed} 用于加快加载。"),
    "models_freed": ("{size} are free again.", "已释放 {size}。"),
    # deleting
    "models_delete_title": ("Delete {name}?", "删除 {name}？"),
    "models_delete_text": ("{format}, {size}. It can be downloaded again.", "{format}，{size}。可重新下载。"),
    "models_forget_title": ("Take {name} off the list?", "将 {name} 移出列表？"),
    "models_forget_text": ("The file stays where it is: {path}", "文件保留在原处：{path}"),
    # files of one's own
    "models_found": ("Found on this machine", "在本机找到的模型"),
    "models_found_text": (
        "They can be used where they lie: nothing is copied, nothing is changed.",
        "可原位使用，不复制、不修改。",
    ),
    "models_bring": ("Use a file of your own", "使用自己的文件"),
    "models_bring_text": (
        "A GGUF file, or a folder with config.json and safetensors. It stays where it is.",
        "GGUF 文件，或含 config.json 与 safetensors 的文件夹。文件保留在原处。",
    ),
    "models_path": ("Path of the file or folder", "文件或文件夹路径"),
    "models_bringing": ("Looking …", "正在读取……"),
    "models_brought": ("{id} can be used now.", "{id} 现在可以使用。"),
    # the token
    "models_token": ("Gated models", "需授权的模型"),
    "models_token_text": (
        "Some makers want to know who you are. Make a token with read access in your account at the hub; it "
        "is kept on this machine and goes to the hub alone.",
        "部分模型需要授权。请在 Hugging Face 账户中创建只读令牌；令牌只存于本机，只发送给 Hugging Face。",
    ),
    "models_token_field": ("Token", "令牌"),
    "models_token_keep": ("Keep", "保存"),
    "models_token_forget": ("Forget it", "删除令牌"),
    "token_keyring": ("A token is kept in this system’s keyring.", "令牌保存在系统钥匙串中。"),
    "token_file": ("A token is kept in a file that only you can read.", "令牌保存在仅你可读的文件中。"),
    # how it is used
    "models_adjust_title": ("How {name} is used", "{name} 的默认设置"),
    "models_adjust_text": (
        "What is left empty is as the catalogue has it. Kept in models.toml in Octavo’s folder.",
        "留空则使用目录中的值。保存在 Octavo 文件夹的 models.toml 中。",
    ),
    "models_prompt": ("System prompt", "系统提示词"),
    "models_context_field": ("Context in tokens", "上下文（token）"),
    "sampling_temperature": ("Temperature", "温度"),
    "sampling_top_p": ("Top-p", "Top-p"),
    "sampling_top_k": ("Top-k", "Top-k"),
    "sampling_min_p": ("Min-p", "Min-p"),
    "sampling_repetition_penalty": ("Repetition penalty", "重复惩罚"),
    "sampling_max_tokens": ("Longest answer in tokens", "最长回答（token）"),
    "models_save": ("Save", "保存"),
    "models_not_number": ("“{text}” is not a number.", "“{text}”不是数字。"),
    # the first day
    "first_title": ("A model for this machine", "适合本机的模型"),
    "first_get": ("Download {name} ({size})", "下载 {name}（{size}）"),
    "first_starter": ("Begin with the starter model ({size})", "先用入门模型（{size}）"),
    "first_starter_here": (
        "The starter model is here; you can chat with it meanwhile.",
        "入门模型已在本机，可先用它对话。",
    ),
    "first_other": ("Choose another", "选择其他模型"),
    "first_not_now": ("Not now", "以后再说"),
}
# names that scripts put together from pieces
COMPUTED = frozenset(
    [
        "models",
        *(f"models_{unit}" for unit in ("seconds", "minutes", "hours")),
        *(f"purpose_{purpose}" for purpose in ("chat", "reasoning", "code", "languages")),
        *(f"badge_{badge}" for badge in ("best", "fits", "tight", "large", "unserved")),
        *(f"download_{state}" for state in ("queued", "fetching", "checking", "waiting", "paused", "failed")),
        *(f"token_{place}" for place in ("keyring", "file")),
        *(
            f"sampling_{name}"
            for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens")
        ),
    ]
)
