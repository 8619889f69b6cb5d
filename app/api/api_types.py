"""What a client may send to the API, checked; the shapes of what it gets back.

The form is OpenAI's. Fields that nobody knows are ignored; fields that are known there and not served here
are refused by name, or a client would believe they had worked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from engine import Message, Request, SamplingParams, Usage

MAX_MESSAGES = 4096
FEW_TOKENS = 16
# field -> what it may be, because it asks for nothing
REFUSED: dict[str, tuple[Any, ...]] = {
    "tools": (None, []),
    "tool_choice": (None, "none", "auto"),
    "functions": (None, []),
    "function_call": (None, "none", "auto"),
    "n": (None, 1),
    "best_of": (None, 1),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "logit_bias": (None, {}),
    "response_format": (None, {"type": "text"}),
    "modalities": (None, ["text"]),
    "audio": (None,),
    "echo": (None, False),
    "prediction": (None,),
    "web_search_options": (None,),
}
# fields that go to the engine under the same name
SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "seed",
)


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class ChatMessage(_Lenient):
    """One turn. Content may come in parts, as long as each is text."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str

    @model_validator(mode="before")
    @classmethod
    def _without_tools(cls, values: Any) -> Any:
        given = values if isinstance(values, dict) else {}
        if given.get("role") in ("tool", "function") or given.get("tool_calls"):
            raise ValueError("tools are not supported.")
        return values

    @field_validator("content", mode="before")
    @classmethod
    def _joined(cls, content: Any) -> Any:
        if not isinstance(content, list):
            return content
        sound = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        texts = [text for part in sound if isinstance(text := part.get("text"), str)]
        if len(texts) < len(content):
            raise ValueError("only parts of type text are supported.")
        return "".join(texts)

    def as_message(self) -> Message:
        """As the engine takes it."""
        return Message("system" if self.role == "developer" else self.role, self.content)


class StreamOptions(_Lenient):
    """What a stream should hold besides the text."""

    include_usage: bool = False


class _Asked(_Lenient):
    """What both kinds of requests may say."""

    model: str
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _nothing_unserved(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for name, harmless in REFUSED.items():
                if name in values and values[name] not in harmless:
                    allowed = [json.dumps(value) for value in harmless if value is not None]
                    rest = f" but as {' or '.join(allowed)}" if allowed else ""
                    raise ValueError(f"{name} is not supported{rest}.")
        return values

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with what it cost."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def limit(self) -> int | None:
        """The longest answer, if the client said."""
        return self.max_tokens

    def sampling(self, defaults: SamplingParams) -> SamplingParams:
        """The engine's parameters: what the client did not say is as in the settings. Raises BadRequest."""
        given = {name: value for name in SAMPLING if (value := getattr(self, name)) is not None}
        if self.limit is not None:
            given["max_tokens"] = self.limit
        if self.stop is not None:
            given["stop"] = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        return replace(defaults, **given)


class ChatCompletionRequest(_Asked):
    """POST /v1/chat/completions."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    max_completion_tokens: int | None = None

    @property
    def limit(self) -> int | None:
        """The longest answer, by whichever name the client said it."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    def question(self) -> Request:
        """For the engine; the rest of it is the caller's."""
        return Request(tuple(message.as_message() for message in self.messages))


class CompletionRequest(_Asked):
    """POST /v1/completions: a text to go on with, or with a suffix a hole to fill."""

    prompt: str
    suffix: str | None = None

    @field_validator("prompt", mode="before")
    @classmethod
    def _one_text(cls, prompt: Any) -> Any:
        texts = prompt if isinstance(prompt, list) else [prompt]
        if len(texts) != 1 or not isinstance(texts[0], str):
            raise ValueError("one text is taken; no list of several, no token ids.")
        return texts[0]

    @property
    def limit(self) -> int:
        """The longest answer; where the client said nothing, as long as OpenAI's."""
        return FEW_TOKENS if self.max_tokens is None else self.max_tokens

    def question(self) -> Request:
        """For the engine; the rest of it is the caller's."""
        return Request((), text=self.prompt, suffix=self.suffix)


def first_complaint(error: ValidationError) -> tuple[str, str]:
    """The field that was wrong, and why, without repeating what was sent."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    return field, f"{field}: {message}" if field else message


def usage(cost: Usage) -> dict[str, Any]:
    """What an answer cost, in OpenAI's words."""
    return {
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens": cost.completion_tokens,
        "total_tokens": cost.prompt_tokens + cost.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cost.cached_tokens},
    }


def error_body(message: str, kind: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """An error, in OpenAI's words."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
