"""Every word the page says, in English with the Chinese beside it; a file for each part of the page.
The page picks a language in the browser (early.js).

Sentences made by the app and the engine (errors, reasons) come in English; sentences/ has their Chinese.
"""

from __future__ import annotations

from . import chat_settings, desk, frame, memory, models, rail, settings, talk

LANGUAGES = ("en", "zh")
PARTS = (frame, rail, chat_settings, talk, desk, models, memory, settings)


def words() -> dict[str, dict[str, str]]:
    """All parts' words by language, as the browser gets them."""
    return {
        language: {name: texts[place] for part in PARTS for name, texts in part.WORDS.items()}
        for place, language in enumerate(LANGUAGES)
    }
