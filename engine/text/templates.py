"""Chat templates: messages to prompt text, rendered by one helper process per template (template_worker.py).

A render that takes over 2 s, wants more than 256 MiB or writes more than 4 million characters ends in a
TemplateError; the next one gets a fresh helper where the old one had to be killed. Renders are cached. Knows
nothing of token ids.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock, Timer
from time import monotonic

from ..errors import EngineStopped, TemplateError
from .tokenizer import Tokenizer

LIMIT_S = 2.0
START_LIMIT_S = 20.0  # for Python to start and import jinja2 on a busy machine
MEMORY = 256 << 20
OUTPUT = 4_000_000  # characters
LONGEST_LINE = 12 * OUTPUT + 100  # in bytes: JSON spells a character in 12 at most
CACHED_RENDERS, CACHED_LENGTH = 64, 100_000  # longer conversations are rendered again
KEPT_ENVIRONMENT = ("SYSTEMROOT", "LD_LIBRARY_PATH")  # without which Python may not start

# for a model that brings no template
CHATML = """{% for turn in messages %}{{ '<|im_start|>' + turn.role + '\\n' + turn.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

CHATML_MARKS = ("<|im_end|>", "<|im_start|>")  # what a model that has no such tokens writes letter by letter

Turn = tuple[str, str]  # role, content


class TemplateRenderer:
    """One model's template. Usable from any thread; renders one at a time.

    turn_ends: texts that end an answer as an end token would.
    """

    def __init__(self, template: str | None, bos: str = "", eos: str = "", limit_s: float = LIMIT_S) -> None:
        """template None: ChatML. bos and eos are the texts of those tokens."""
        self._limit_s = limit_s
        self.turn_ends = CHATML_MARKS if template is None else ()
        setup = {
            "template": CHATML if template is None else template,
            "bos_token": bos,
            "eos_token": eos,
            "memory": MEMORY,
            "output": OUTPUT,
            "seconds": int(limit_s) + 2,
        }
        self._setup = _line(setup)
        self._lock = Lock()
        self._worker: subprocess.Popen[bytes] | None = None
        self._is_ready = self._closed = False
        self._cached = lru_cache(CACHED_RENDERS)(self._render)

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> TemplateRenderer:
        """For a model's own template."""
        bos, eos = tokenizer.text_of(tokenizer.bos_id), tokenizer.text_of(tokenizer.eos_id)
        return cls(tokenizer.chat_template, bos, eos)

    def render(self, turns: Sequence[Turn], date: str) -> str:
        """The conversation as the template writes it; date (ISO) is what it takes for today."""
        short = sum(len(content) for _, content in turns) <= CACHED_LENGTH
        return (self._cached if short else self._render)(tuple(turns), date)

    def start(self) -> None:
        """Start the helper ahead of the first render; does not wait for it."""
        with self._lock:
            self._started()

    def close(self) -> None:
        """End the helper, for good."""
        with self._lock:
            self._closed = True
            self._stop()

    def _render(self, turns: tuple[Turn, ...], date: str) -> str:
        messages = [{"role": role, "content": content} for role, content in turns]
        request: dict[str, object] = {"messages": messages, "date": date}
        with self._lock:
            answer = json.loads(self._ask(_line(request)))
        if "text" not in answer:
            raise TemplateError(f"The model's chat template failed: {answer['error'].rstrip('.')}.")
        return str(answer["text"])

    def _ask(self, request: bytes) -> bytes:
        """The helper's answer, a line. Asks a second helper if the first has died, for whatever reason."""
        for _ in range(2):
            worker = self._started()
            if not self._is_ready and not _exchange(worker, self._setup, START_LIMIT_S):
                self._stop()
                raise TemplateError("The process that renders chat templates did not start.")
            self._is_ready = True
            began = monotonic()
            if answer := _exchange(worker, request, self._limit_s):
                return answer
            self._stop()
            if monotonic() - began >= self._limit_s:
                raise TemplateError(f"The model's chat template took longer than {self._limit_s:g} s.")
        raise TemplateError("The model's chat template made the process that renders it fail.")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise EngineStopped("The model is no longer in memory.")
        if self._worker is None:
            environment = {key: os.environ[key] for key in KEPT_ENVIRONMENT if key in os.environ}
            self._worker = subprocess.Popen(
                # as a file: it needs nothing of this package, and -E -P keep foreign modules off its path
                [sys.executable, "-E", "-P", str(Path(__file__).with_name("template_worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl-C in the terminal is for the program alone
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            self._is_ready = False
        return self._worker

    def _stop(self) -> None:
        if self._worker:
            self._worker.kill()
            self._worker.communicate()  # closes the pipes and waits
            self._worker = None


def _line(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _exchange(worker: subprocess.Popen[bytes], line: bytes, limit_s: float) -> bytes:
    """Writes a line and reads the one that answers it; nothing if the helper fails or has to be killed."""
    assert worker.stdin and worker.stdout
    timer = Timer(limit_s, worker.kill)
    timer.daemon = True
    timer.start()
    try:
        worker.stdin.write(line)
        worker.stdin.flush()
        answer = worker.stdout.readline(LONGEST_LINE)
    except OSError:  # its end of the pipe is closed
        answer = b""
    finally:
        timer.cancel()
    return answer if answer.endswith(b"\n") else b""
