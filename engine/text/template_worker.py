"""Renders a chat template in a process of its own (started as a file by templates.py, JSON on pipes).

A template comes with a model file and is not trusted. Jinja's sandbox keeps it from code and files; this
process keeps its cost away from the program: memory is limited where the system can do that, output is
capped, and the parent ends the process when a render takes long (templates.py). A template finds what
transformers' apply_chat_template gives it, but not the clock. Imports the standard library and jinja2 only.
First line in: {"template", "bos_token", "eos_token", "memory", "output", "seconds"}, answered {"ready"}.
Then for each render {"messages", "date"} in, {"text"} or {"error"} out, to the end
of input.
"""

from __future__ import annotations

import datetime
import json
import signal
import sys
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace


class GenerationBlock(Extension):
    """{% generation %} marks what a model writes, which matters in training; here it is only its content."""

    tags = {"generation"}  # noqa: RUF012  # declared so by Jinja

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class SafeNamespace(Namespace):
    """Jinja's namespace without names like __html__: Python looks those up behind the sandbox's back."""

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        Namespace.__init__(self)
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise SecurityError(f"a namespace may not have {name!r}")
        Namespace.__setitem__(self, name, value)


def raise_exception(message: str) -> None:
    raise TemplateError(message)


def to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    """Jinja's own filter escapes HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, loopcontrols]
    )
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    made.globals["namespace"] = SafeNamespace
    made.globals["dict"] = lambda *args, **kwargs: dict(*args, **kwargs)  # not the type, which has methods
    return made


def render(template: Template, request: dict[str, Any], setup: dict[str, Any]) -> str:
    today = datetime.datetime.fromisoformat(request["date"])
    parts, length = [], 0
    for part in template.generate(
        messages=request["messages"],
        add_generation_prompt=True,
        bos_token=setup["bos_token"],
        eos_token=setup["eos_token"],
        tools=None,
        documents=None,
        strftime_now=lambda form: today.strftime(form),
    ):
        parts.append(part)
        length += len(part)
        if length > setup["output"]:
            raise TemplateError(f"it wrote more than {setup['output']:,} characters")
    return "".join(parts)


def limit_memory(size: int) -> None:
    """At most size bytes of address space; Windows has no such limit, and macOS does not enforce it."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    except (ImportError, OSError, ValueError):
        pass


def main() -> None:
    lines, answers = sys.stdin.buffer, sys.stdout.buffer
    setup = json.loads(lines.readline())
    limit_memory(setup["memory"])
    alarm = getattr(signal, "alarm", lambda seconds: None)  # ends a render that has outlived the parent
    template, answer = None, json.dumps({"ready": True})
    while True:
        answers.write(answer.encode() + b"\n")
        answers.flush()
        alarm(0)
        if not (line := lines.readline()):
            return
        alarm(setup["seconds"])
        try:
            # compiled within the first render's time
            template = template or environment().from_string(setup["template"])
            answer = json.dumps({"text": render(template, json.loads(line), setup)})
        except MemoryError:
            answer = json.dumps({"error": f"it wanted more than {setup['memory'] >> 20} MiB of memory"})
        except Exception as error:  # whatever a template can raise is the template's error
            kind = "" if type(error) is TemplateError else f"{type(error).__name__}: "
            said = "".join(letter if letter.isprintable() else " " for letter in str(error)[:300])
            answer = json.dumps({"error": kind + said})


if __name__ == "__main__":
    main()
