"""The words of what stands around all pages, and of a locked one: name -> (English, Chinese). {name} in a
text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "pages": ("Pages", "页面"),
    "theme": ("Theme", "主题"),
    "theme_light": ("Light", "浅色"),
    "theme_dark": ("Dark", "深色"),
    "theme_system": ("System", "跟随系统"),
    "no_scripts": (
        "Octavo’s page is drawn by scripts, and this browser runs none here. Allow JavaScript for this "
        "address, then reload.",
        "Octavo 的页面由脚本绘制，而此浏览器在这里不运行脚本。请允许此地址使用 JavaScript，然后刷新页面。",
    ),
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
        "Octavo does not answer. If it was closed, start it again; this page then goes on by itself. "
        "If it runs, load this page anew.",
        "Octavo 没有响应。如果已关闭，请重新启动，本页会自动恢复；如果仍在运行，请重新加载本页。",
    ),
}
# names that scripts put together from pieces
COMPUTED = frozenset(
    ["theme_light", "theme_dark", "theme_system", "no_scripts", "locked", "locked_text", "locked_how"]
)
