"""The words of the sheet of a chat's settings: name -> (English, Chinese). {name} in a text is a place for a
value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "chat_settings": ("Settings of this chat", "此对话的设置"),
    "preset": ("Preset", "预设"),
    "no_preset": ("None", "无"),
    "delete_preset": ("Delete the preset “{name}”", "删除预设“{name}”"),
    "preset_name": ("Name of the preset", "预设名称"),
    "keep_preset": ("Keep as preset", "存为预设"),
    "set_model": ("Model", "模型"),
    "any_model": ("Whichever is loaded", "当前加载的模型"),
    "set_model_text": (
        "Another model is loaded when the answers that run have ended.",
        "其他模型会在正在进行的回答结束后加载。",
    ),
    "set_prompt": ("System prompt", "系统提示词"),
    "no_prompt": ("None: the model’s own", "无：使用模型自带的"),
    "set_temperature": ("Temperature", "温度"),
    "set_top_p": ("Top-p", "Top-p"),
    "set_top_k": ("Top-k", "Top-k"),
    "set_min_p": ("Min-p", "Min-p"),
    "set_repetition_penalty": ("Repetition penalty", "重复惩罚"),
    "set_max_tokens": ("Longest answer (tokens)", "最长回答（token）"),
    "set_seed": ("Seed", "随机种子"),
    "usual_max_tokens": ("no limit", "不限"),
    "usual_seed": ("new each time", "每次不同"),
    "settings_count": (
        "Fields left empty follow the general settings. Changes count from the next answer on.",
        "留空则沿用通用设置。更改从下一次回答开始生效。",
    ),
    "reset_settings": ("All as usual", "全部恢复默认"),
}
# names that scripts put together from pieces
COMPUTED = frozenset(
    f"{part}_{name}"
    for part, names in (
        ("set", "temperature top_p top_k min_p repetition_penalty max_tokens seed"),
        ("usual", "max_tokens seed"),
    )
    for name in names.split()
)
