"""The words after `octavo` and their options, as a table. What a command does is commands.py's.

An option that is not given is None, or False where it is a switch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine import QUANTIZATIONS

from ..settings import program_version

# what argparse's add_argument takes: a name, and the rest
Option = tuple[str, dict[str, Any]]


def _filled(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty.")
    return text


def _port(text: str) -> int:
    if not _filled(text).isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(
            f"port is {text:.50}; it must lie between 1 and 65535, or be 0 for a free one."
        )
    return int(text)


def _path(text: str) -> Path:
    return Path(_filled(text))  # "" would mean this folder


# after `models`, too, where what was said before must stay
JSON: Option = "--json", {"action": "store_true", "default": argparse.SUPPRESS, "help": "one JSON object"}
MODEL: Option = (
    "--model",
    {
        "type": _filled,
        "metavar": "ID",
        "help": "an id from `octavo models`, or a GGUF file's or folder's path",
    },
)
QUANTIZATION: Option = (
    "--quantization",
    {
        "choices": QUANTIZATIONS,
        "help": "what unquantized weights become when they are loaded (on a processor none is int8 as well); "
        "awq, gptq: what they must be already",
    },
)
VARIANT: Option = (
    "--variant",
    {
        "type": _filled,
        "metavar": "FORMAT",
        "help": "as in `octavo models show ID`; for pull, else what suits this machine",
    },
)
ID: Option = "id", {"type": _filled, "help": "as in `octavo models`"}
END = "`python3 -m installer uninstall`, in Octavo's folder, takes away what its `install` put elsewhere."
# words -> what --help says, options
WORDS: dict[str, tuple[str, tuple[Option, ...]]] = {
    "run": ("open the chat page; so does `octavo` alone", ()),
    "quit": ("end the Octavo that is running", ()),
    "chat": (
        "one answer, in the terminal",
        (
            ("prompt", {"nargs": "?", "help": "what to ask; without it, or with -, stdin says it"}),
            MODEL,
            QUANTIZATION,
            ("--max-tokens", {"type": int, "metavar": "N", "help": "the longest answer"}),
            ("--temperature", {"type": float, "metavar": "T", "help": "0: always the likeliest token"}),
            ("--seed", {"type": int, "metavar": "N", "help": "the same seed gives the same answer"}),
            JSON,
        ),
    ),
    "serve": (
        "the API alone, without the page",
        (("--port", {"type": _port, "metavar": "N", "help": "0: a free one"}), MODEL),
    ),
    "key": ("print the key that API clients send", ()),
    "inspect": (
        "what is in a model file or folder, without loading it",
        (("path", {"type": _path, "help": "a GGUF file, or a folder with safetensors"}), JSON),
    ),
    "perplexity": (
        "how well a model foretells a text",
        (
            ("model", {"type": _filled, "metavar": "PATH_OR_ID", "help": "as for `octavo chat --model`"}),
            ("--text", {"type": _path, "required": True, "metavar": "FILE", "help": "a text in UTF-8"}),
            QUANTIZATION,
            JSON,
        ),
    ),
    "doctor": ("what this machine has, and whether the model answers", (MODEL, JSON)),
    "models": ("list the models, look at one, or fetch it", (JSON,)),
    "models list": ("list them; so does `octavo models` alone", (JSON,)),
    "models pull": (
        "fetch a model",
        (
            ("id", {"type": _filled, "help": "as in `octavo models`, or OWNER/NAME of the Hugging Face hub"}),
            VARIANT,
        ),
    ),
    "models remove": ("delete a model's files; it says how much is free then", (ID, VARIANT)),
    "models import": (
        "use a GGUF file or a folder where it lies",
        (("path", {"type": _path, "help": "it is not copied, and stays yours"}),),
    ),
    "models show": ("its variants, what fits here, and which is best", (ID, JSON)),
    "token": (
        "keep your token of the Hugging Face hub, for gated models",
        (("--forget", {"action": "store_true", "help": "delete it"}),),
    ),
    "models check": ("compare the catalogue with the Hugging Face hub", (JSON,)),
}


class _Word(argparse.ArgumentParser):
    """What reads behind a word; what it does not know is said with its own usage, not the whole program's."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def make_parser(commands: Mapping[str, Callable[..., Any]]) -> argparse.ArgumentParser:
    """What reads the words; the result's `command` is the one that is meant."""
    parser = argparse.ArgumentParser("octavo", description="Language models on your own machine.", epilog=END)
    parser.add_argument("--version", action="version", version=f"octavo {program_version()}")
    parser.set_defaults(json=False)
    within = {"": parser.add_subparsers(metavar="command", required=True, parser_class=_Word)}
    for words, (said, options) in WORDS.items():
        first, _, word = words.rpartition(" ")
        made = within[first].add_parser(word, help=said, description=f"{said[0].upper()}{said[1:]}.")
        made.set_defaults(command=commands[words])
        for name, rest in options:
            made.add_argument(name, **rest)
        if any(other.startswith(f"{words} ") for other in WORDS):
            within[words] = made.add_subparsers(metavar="command")
    return parser
