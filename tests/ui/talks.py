"""Chats as people have them, for pictures and for whoever looks at all pages at once: answered ones and one
that grows with messages waiting, thoughts, answers side by side, versions, one that failed, one put away.
"""

from __future__ import annotations

from app import Comparison
from engine import FinishReason
from tests.ui.conftest import Served
from tests.ui.pictures import PLAN, memory_picture

TALKS = {
    "Explain how a book is bound": """\
A bound book begins as **large sheets**, printed with several pages each.

1. *Folding.* A sheet folded once is a folio, twice a quarto, three times an **octavo** of sixteen pages.
2. *Gathering.* Folded sheets are put in order and pressed.
3. *Sewing.* Thread runs through the fold of each, and around the cords of the spine.
4. *Casing in.* Glue, a strip of mull, and the boards.

| format | folds | pages of a sheet |
|---|---|---|
| folio | 1 | 4 |
| quarto | 2 | 8 |
| octavo | 3 | 16 |""",
    "How many pages has a sheet after n folds?": """Each fold doubles the leaves, and a leaf has two pages:

$$p(n) = 2 \\cdot 2^{n}$$

```python
def pages(folds: int) -> int:
    \"\"\"Pages of a sheet after so many folds.\"\"\"
    return 2 * 2**folds

assert pages(3) == 16  # an octavo
```

So three folds give $p(3) = 16$.""",
    "Write a short poem about rain": """Rain counts the roofs it knows by heart,
a patient hand, a quiet art;
the street forgets where it began
and wears the sky as best it can.""",
    "用一句话解释什么是对开本": "对开本是把一张大纸对折一次得到的书页：两张书叶，四个页面。",
    "Plan a week in Kyoto": "Begin in the east: **Fushimi Inari** before eight, then Tofuku-ji.",
    "Fix this regular expression": r"`^\d{4}-\d\d$` wants a month as well: try `^\d{4}-(0[1-9]|1[0-2])$`.",
    "Three ideas for dinner": "- Leeks with mustard\n- Lentils, lemon and a soft egg\n- Noodles with sesame",
}
THINKING = "A train leaves at nine. When is it there?"
COMPARED = "Name a cat"
CATS = ["**Quire**, for she sleeps folded.", "*Vellum*. Soft, pale and older than she looks.", "Inkpot."]
GROWING = "Write a long letter"
FAILED = "What went wrong?"
FAULT = (
    "There was no memory left for 512 tokens of this answer (CUDA out of memory). Other answers go on; close "
    "other programs, or load a smaller model."
)
AWAY = "An old chat"


def fill(served: Served) -> dict[str, str]:
    """Write the chats; the names that addresses use."""
    send, turns = served.services.chats.send, served.services.chats.turns
    served.model.answer = lambda request: None
    away = begun(served, AWAY)
    chats = {title: begun(served, title, TALKS[title]) for title in reversed(TALKS)}
    chat, formula, *_ = TALKS
    names = {"chat": chats[chat], "formula": chats[formula]}
    names["thinking"] = begun(served, THINKING, "<think>\nFive hours on the way.\n</think>\n\nAt two.")
    names["compared"] = begun(served, COMPARED, *CATS)
    names["versions"] = begun(served, "Name a dog", "Rex.")
    ended(served, names["versions"])
    turns.retry(names["versions"])
    write(served, "Fold.", FinishReason.LENGTH)
    names["failed"] = send("", FAILED)
    write(served, "It began", FinishReason.ERROR, FAULT)
    names["growing"] = send("", GROWING)
    write(served, "Dear reader,\n\nthe sheet that you hold was folded three times before it", None)
    for text in ("And then a shorter one", "What does it cost to send?"):
        send(names["growing"], text)
    for each in {away, *chats.values(), *names.values()} - {names["growing"]}:
        ended(served, each)
    served.services.shelf.archive(away, True)
    path = served.services.settings.home.path / "quire.gguf"
    path.write_bytes(b"GGUF")
    served.services.library.store.own.keep("quire", path=str(path), name="Quire 7B Instruct")
    served.model.plan, served.model.shown = PLAN, memory_picture(list(chats.values()), kept=300)
    return names


def begun(served: Served, text: str, *answers: str) -> str:
    """A chat of a question and its answers."""
    chat = served.services.chats.send("", text, compared=Comparison(max(1, len(answers))))
    for answer in answers or ("Octavo",):
        write(served, answer)
    return chat


def write(
    served: Served, text: str, finish: FinishReason | None = FinishReason.STOP, error: str = ""
) -> None:
    """The next answer; None: it goes on."""
    stream = served.model.next_stream()
    stream.write(text)
    if finish:
        stream.finish(finish, error)


def ended(served: Served, chat: str) -> None:
    """Wait until nothing grows in a chat."""
    chats = served.services.chats
    version = -1
    while chats.busy(chat):
        version = chats.wait(chat, version, 1.0)
