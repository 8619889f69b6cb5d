"""What the model is given of a chat: the messages of its branch, as a conversation.

Documents stand before the message they were given with. A summary stands for the messages up to its own, as
a question and the answer that it was: so roles go on taking turns, as many templates ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine import Message

from .records import Attachment, Chat, StoredMessage, Summary

SUM_UP = (
    "Sum up our conversation so far, so that we can go on from your summary alone: what I want, what was "
    "found out and decided, names, numbers and code that are still needed. Write it in our language."
)


def conversation(
    chat: Chat, messages: Sequence[StoredMessage], summary: Summary | None = None
) -> tuple[Message, ...]:
    """What the model is given of a branch."""
    said = [message for _, message in turns(messages, summary)]
    return (Message("system", chat.system_prompt), *said) if chat.system_prompt else tuple(said)


def turns(
    messages: Sequence[StoredMessage], summary: Summary | None = None
) -> list[tuple[StoredMessage | None, Message]]:
    """What is said, each with the message that it comes from; None: it is the summary's.

    A question whose answer has no word is left out: a chat whose prompt was refused could never go on
    otherwise.
    """
    said: list[tuple[StoredMessage | None, Message]] = []
    for message in messages:
        reply = message.reply
        if message.role == "user":
            said.append((message, Message("user", with_files(reply.text, message.files))))
        elif reply.text:
            said.append((message, Message("assistant", reply.text, reply.token_ids, reply.tokenizer)))
        elif said:
            said.pop()
        if summary and message.id == summary.message:
            answer = Message("assistant", summary.text, summary.token_ids, summary.tokenizer)
            said = [(None, Message("user", SUM_UP)), (None, answer)]
    return said


def with_files(text: str, files: Iterable[Attachment]) -> str:
    """A message as the model reads it, below what was chosen of its documents."""
    return "\n\n".join([*(file.given for file in files if file.given), text])
