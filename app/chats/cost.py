"""What a message would cost before it is sent: tokens, how many of them are cached, how long until the first
word, and whether it still fits. Nothing is cut in silence: what does not fit is said here, with the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import EngineError, Message, PromptTooLong, Request

from ..documents.attachments import Attachments
from ..documents.context import choose, room_for_answer, with_chosen
from ..errors import AppError
from ..memory.runtime import Runtime
from .records import Attachment


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens and seconds. `limit` is the context, `answer` what is wanted for the answer at least."""

    tokens: int
    cached: int
    seconds: float
    limit: int
    answer: int
    files: tuple[Attachment, ...]  # with what of them would be given
    problem: str = ""  # why it can't be sent like this, though it may fit


def cost_of(
    runtime: Runtime, kept: Attachments, request: Request, text: str, files: tuple[Attachment, ...]
) -> Cost:
    """Of sending a text with files after a conversation. Raises AppError while the model is not there."""
    asked = _with(request, text)
    limit, answer = runtime.context_length, room_for_answer(runtime, request)
    try:
        chosen = choose(runtime, asked, files, kept) if files else ()
        estimate = runtime.estimate(with_chosen(asked, chosen))
    except PromptTooLong as error:  # so long that it was not counted to its end
        return Cost(2 * limit, 0, 0.0, limit, answer, files, str(error))
    except (AppError, EngineError) as error:
        if not files:
            raise AppError(str(error)) from error
        tokens = runtime.estimate(asked).prompt_tokens
        return Cost(tokens, 0, 0.0, limit, answer, files, str(error))
    found = estimate.prompt_tokens, estimate.cached_tokens, estimate.first_token_s
    return Cost(*found, limit, answer, chosen)


def _with(request: Request, text: str) -> Request:
    return Request(
        messages=(*request.messages, Message("user", text)),
        sampling=request.sampling,
        owner=request.owner,
        date=request.date,
        model=request.model,
    )
