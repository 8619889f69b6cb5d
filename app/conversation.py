"""What the model is given of a chat: the messages of its branch, as a conversation."""

from __future__ import annotations

from engine import Message

from .records import Chat, StoredMessage


def conversation(chat: Chat, messages: tuple[StoredMessage, ...]) -> tuple[Message, ...]:
    """What the model is given of a branch.

    A question whose answer has no word is left out: a chat whose prompt was refused could never go on
    otherwise.
    """
    turns: list[Message] = []
    for message in messages:
        reply = message.reply
        if message.role == "user":
            turns.append(Message("user", reply.text))
        elif reply.text:
            turns.append(Message("assistant", reply.text, reply.token_ids, reply.tokenizer))
        elif turns:
            turns.pop()
    return (Message("system", chat.system_prompt), *turns) if chat.system_prompt else tuple(turns)
