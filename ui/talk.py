"""What the conversation may ask for: versions of messages, more answers, the line of those that wait.

Its scripts are assets/talk/talk.js and the parts around it.
"""

from __future__ import annotations

from typing import Any

from app import AppError, Comparison

from .acts import act

MOST_MESSAGES = 2_000  # on one page


def _text(page: Any, chat: str, message: int) -> dict[str, Any]:
    """A message's text as it is stored, without thoughts, for the clipboard and to be edited."""
    found = [each.text for each in page.chats.view(chat, MOST_MESSAGES).messages if each.id == message]
    return {"text": found[0]} if found else {"error": "This message is gone."}


def _thoughts(page: Any, chat: str, message: int, start: int) -> dict[str, Any]:
    """What was thought before an answer, from a character on: a page that shows it grow asks for the rest."""
    return {"text": page.chats.thoughts(chat, message)[max(0, start) :]}


def comparison(given: dict[str, Any]) -> Comparison:
    """How a question is to be answered, as the page says it; {} is once."""
    answers, by_heat, models = given.get("answers", 1), given.get("by_heat", False), given.get("models", [])
    are_texts = isinstance(models, list) and all(isinstance(model, str) for model in models)
    if type(answers) is not int or type(by_heat) is not bool or not are_texts:
        raise AppError("The page sent something of a wrong kind. Reload it.")
    return Comparison(answers, by_heat, tuple(models))


def _edit(page: Any, chat: str, message: int, role: str, text: str) -> None:
    """A message in other words: what the person wrote is asked anew, an answer stands as it is written."""
    (page.chats.turns.edit if role == "user" else page.chats.revise)(chat, message, text)


ACTS = {
    "text": act(_text, chat=str, message=int),
    "thoughts": act(_thoughts, chat=str, message=int, start=int),
    "retry": act(lambda page, chat, message: page.chats.turns.retry(chat, message), chat=str, message=int),
    "compare": act(
        lambda page, chat, message, compared: page.chats.turns.retry(chat, message, comparison(compared)),
        chat=str,
        message=int,
        compared=dict,
    ),
    "pick": act(lambda page, chat, message: page.chats.pick(chat, message), chat=str, message=int),
    "edit": act(_edit, chat=str, message=int, role=str, text=str),
    "version": act(lambda page, chat, message: page.chats.show(chat, message), chat=str, message=int),
    "branch": act(
        lambda page, chat, message: {"chat": page.chats.branch(chat, message)}, chat=str, message=int
    ),
    "remove": act(lambda page, chat, message: page.chats.remove(chat, message), chat=str, message=int),
    "resume": act(lambda page, chat, message: page.chats.turns.resume(chat, message), chat=str, message=int),
    "hurry": act(lambda page, chat: page.chats.turns.hurry(chat), chat=str),
    "send_now": act(
        lambda page, chat, waiting: page.chats.turns.send_now(chat, waiting), chat=str, waiting=int
    ),
    "change_waiting": act(
        lambda page, chat, waiting, text: page.chats.change_waiting(chat, waiting, text),
        chat=str,
        waiting=int,
        text=str,
    ),
}
