"""The page is Chinese to the last sentence: whatever app, engine and pages can say has a Chinese form, none
is there that nobody says, and the page puts all of them, however they are joined, into Chinese.

A sentence is found in the code by its look: a text, or an f-string with its values as holes, in which two
words stand side by side. Those that no page shows are listed here, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_tree import modules, tree
from tests.ui.conftest import NewProfile, Served
from ui.words.sentences import SAID, SYSTEM, sentences

# what is said elsewhere than on a page
ELSEWHERE = {
    "app/commands": "commands print it",
    "app/__main__.py": "commands print it",
    "ui/__main__.py": "commands print it",
    "app/api": "the API answers it to programs",
    "engine/text/text_prompt.py": "only programs send a bare text",
    "app/access": "it is said before there is a page, or instead of one",
    "app/about/diagnostics.py": "it stands in the bundle for whoever helps",
    "app/models/catalogue_check.py": "`octavo models check` prints it",
    "app/models/catalogue.py": "the packaged catalogue is right, or no page opens",
    "engine/scoring.py": "`octavo perplexity` prints it",
    "engine/formats/costs.py": "`octavo inspect` prints it",
    "engine/packed_cache.py": "it goes to the log",
    "engine/tiers": "it goes to the log",
    "app/__init__.py": "it names what others import",
    "engine/__init__.py": "it names what others import",
    "ui/locked.py": "it has its own words",
}
# texts that are no sentences
OTHER = {
    "markup": r"</|<[a-z!]|charset=|^attachment;|excerpts=|\{ [a-z-]+: ",
    "SQL": r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|WHERE|WITH|ALTER|DROP|PRAGMA)\b|^id, name, hash|^text, ",
    "a line of a protocol": r"^Bearer |^bytes \{\}|^model name$",
    "logged": r"%s",
    "told to a model": r"^Sum up our conversation|^Hello again$|^probe \{\}$",
    "a name that is not ours": r"^Gemma Terms|^No module named",
    "looked for in a log": r"^Traceback|^During handling",
    "a part's name in the code": r"^\{\} (gate_up|down)\b|^prefix hashes$",
    "printed by a command": r"^(its own|none; ChatML is used|not named)$",
    "a state, not a sentence": r"^(on the hub|not served)$",
    "written into a file": r"^New chat$|^\*File: |^, \{\} of \{\}$",
    "names of architectures": r"^afmoe ",
    "a name of ours": r"^context length$|^here \{\}$|^no \{\}$|^from kernels",
}
WORDS_SIDE_BY_SIDE = re.compile(r"[a-z]{2,}[,.;:]? ([a-z]{2}|\{)|\} [a-z]{2}")


def hollow(sentence: str) -> str:
    """Without the names of its holes."""
    return re.sub(r"\{\w+\}", "{}", sentence).strip()


def shown(path: Path) -> bool:
    return not path.as_posix().startswith((*ELSEWHERE, "ui/words"))


def template(node: ast.expr) -> str | None:
    """The text of an expression, its values as {}; None if it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        return "".join(part if part == "{}" else re.sub(r"\{(\w+)\}|[{}]", "{}", part) for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template(node.left), template(node.right)
        return None if left is right is None else f"{left or '{}'}{right or '{}'}"
    return None


def values(node: ast.expr) -> Iterator[ast.expr]:
    """What fills the holes of a text."""
    if isinstance(node, ast.JoinedStr):
        yield from (part.value for part in node.values if isinstance(part, ast.FormattedValue))
    elif isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            yield from [side] if template(side) is None else values(side)


def texts(node: ast.AST) -> Iterator[str]:
    """The largest texts below a node, and those inside of their values; not what explains the code."""
    text = template(node) if isinstance(node, ast.expr) else None
    if text is not None:
        yield hollow(text)
    is_comment = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    inside = ast.iter_child_nodes(node) if text is None else values(node)  # type: ignore[arg-type]
    for child in () if is_comment or isinstance(node, ast.Assert) else inside:
        yield from texts(child)


def is_sentence(text: str) -> bool:
    is_other = any(re.search(look, text) for look in OTHER.values())
    return bool(WORDS_SIDE_BY_SIDE.search(text)) and "\n" not in text and not is_other


KNOWN = {hollow(english) for part in SAID for english in part}
CODE = {path: set(texts(tree(path))) for path in modules("app", "engine", "ui") if "words" not in path.parts}


@pytest.mark.parametrize("path", list(filter(shown, CODE)), ids=str)
def test_what_the_code_says_has_a_chinese_form(path: Path) -> None:
    missing = sorted(filter(is_sentence, CODE[path] - KNOWN))
    assert not missing, f"{path} says what ui/words/sentences has no Chinese for: {missing}"


def test_nothing_has_one_that_nobody_says() -> None:
    assert sorted(KNOWN - set().union(*CODE.values())) == []


def test_no_sentence_stands_there_twice() -> None:
    listed = [hollow(english) for part in (*SAID, SYSTEM) for english in part]
    assert sorted({each for each in listed if listed.count(each) > 1}) == []


@pytest.mark.parametrize(("english", "chinese"), sentences().items())
def test_the_chinese_form_has_the_same_values(english: str, chinese: str) -> None:
    holes, filled = (set(re.findall(r"\{(\w+)\}", text)) for text in (english, chinese))
    assert holes - {"chats"} == filled  # "chat" or "chats": Chinese has one word
    assert not english.endswith(".") or chinese.endswith(("。", "？"))


CASES = {
    "This message is gone.": "这条消息已不存在。",
    # a unit in words, and one of letters
    "port is -1; it must be minutes, from 0 to 1,000,000.": "port 的值为 -1，应为 0 到 1,000,000 分钟。",
    "port is -1; it must be GB, from 0 to 1,000,000.": "port 的值为 -1，应为 0 到 1,000,000 GB。",
    # a sentence inside of another, a list of them, one after a name
    "The model is loading: reading its weights.": "模型正在加载：读取权重。",
    "The model is loading: checking once that the graphics card computes rightly, up to a minute.": (
        "模型正在加载：检查显卡计算是否正确，仅此一次，最多约一分钟。"
    ),
    "m.gguf is damaged: tensor a.b has 9 dimensions, not 1 to 4. Download it again.": (
        "m.gguf 已损坏：张量 a.b 有 9 维，应为 1 到 4 维。请重新下载。"
    ),
    "notes.txt was not taken. It is a picture; this program reads text only.": (
        "notes.txt 未能添加。这是图片；本程序只读取文字。"
    ),
    "Models run on the processor. Its memory is limited by the container it runs in.": (
        "模型在处理器上运行。内存受所在容器的限制。"
    ),
    "The pool takes 1.24 GB, room for 8 chats of 8,192 tokens: that is half of the 2.48 GB free beside the "
    "weights.": "内存池占用 1.24 GB，可容纳 8 个 8,192 token 的对话：即权重之外空闲的 2.48 GB 的一半。",
    "big needs 9.00 GB for its weights and 1.00 GB for one chat of 512 tokens, together 10.00 GB; 2.00 GB "
    "can be used now. Close other programs, or choose a smaller model or a shorter context.": (
        "big 的权重需要 9.00 GB，一个 512 token 的对话需要 1.00 GB，共 10.00 GB；目前可用 2.00 GB。"
        "请关闭其他程序，或请选择较小的模型或较短的上下文。"
    ),
    "About 7.5 tokens/s, room for 1 chat of 8,192 tokens; 8 are wanted. That is slower than one reads.": (
        "约 7.5 token/秒，能容纳 1 个 8,192 token 对话，设置要求 8 个。这比阅读速度慢。"
    ),
    "About 8.1 tokens/s, room for 9 chats of 8,192 tokens. Its weights are made int4 when they are loaded.": (
        "约 8.1 token/秒，能容纳 9 个 8,192 token 对话。加载时权重会转换为 int4。"
    ),
    "m.part did not come: nothing came for 30 s. What is here stays: 1.0 MB of 9.0 MB.": (
        "m.part 未能下载：30 秒内没有收到数据。已下载的部分会保留：1.0 MB / 9.0 MB。"
    ),
    "/data/settings.toml: port is 0; it must lie between 1 and 65535.": (
        "/data/settings.toml: 端口为 0，应在 1 到 65535 之间。"
    ),
    "/d/chats.db can't be written: No space left on device.": "无法写入 /d/chats.db：磁盘空间不足。",
    # names are left alone, and so is what nobody knows
    "There is a folder “This message is gone” already.": "已有名为“This message is gone”的文件夹。",
    "Segmentation fault at 0x7f": "Segmentation fault at 0x7f",
    "<img src=x onerror=alert(1)> is empty.": "<img src=x onerror=alert(1)> 是空的。",
    "": "",
}


def test_the_page_says_them_in_its_language(shared: Served, new_profile: NewProfile) -> None:
    chinese = new_profile(shared, locale="zh-CN").open()
    assert chinese.evaluate("all => all.map(octavo.said)", list(CASES)) == list(CASES.values())
    made = {re.sub(r"\{(\w+)\}", "⟨7⟩", said): wanted for said, wanted in sentences().items()}
    wanted = [re.sub(r"\{\w+\}", "⟨7⟩", each) for each in made.values()]
    assert chinese.evaluate("all => all.map(octavo.said)", list(made)) == wanted
    english = new_profile(shared, locale="en-GB").open()
    assert english.evaluate("all => all.map(octavo.said)", list(CASES)) == list(CASES)


def test_long_texts_cost_no_time(shared: Served, new_profile: NewProfile) -> None:
    page = new_profile(shared, locale="zh-CN").open()
    texts = ["a is b; it must be c. " * 100, "A. " * 900, ": " * 1400, "{" * 2999, "is damaged: " * 200]
    page.set_default_timeout(5000)
    assert page.evaluate("all => all.map(octavo.said).length", texts) == len(texts)
