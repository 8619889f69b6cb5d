"""The commands that need no page: chat, serve, key, doctor, models. `main` takes the words after `octavo`.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 it could not be done, 2 wrong
usage, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any

from engine import EngineError

from .catalogue import read_catalogue
from .errors import AppError
from .keys import Keys
from .model_store import ModelStore, in_words
from .settings import Home, load_settings, prepare_process, program_version
from .terminal import Meter, show_json, show_table

FAILED, INTERRUPTED = 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Wrong usage ends the process with 2, as argparse does."""
    wanted = _parser().parse_args(argv)
    try:
        home = Home.find()
        prepare_process(home)
        code = int(wanted.command(wanted, home) or 0)
        sys.stdout.flush()
        return code
    except (AppError, EngineError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # mostly at the output, where it would be tried again when the process ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # `octavo models | head -1`
            return FAILED
        return _fail(f"{error.filename or 'The output'} can't be used: {error.strerror}.")


def _fail(sentence: str) -> int:
    print(f"octavo: {sentence}", file=sys.stderr)
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("octavo", description="Language models on your own machine.")
    parser.add_argument("--version", action="version", version=f"octavo {program_version()}")
    commands = parser.add_subparsers(metavar="command", required=True)

    run = commands.add_parser("run", help="open the chat page; so does `octavo` alone")
    run.set_defaults(command=_run)

    chat = commands.add_parser("chat", help="one answer, in the terminal")
    chat.add_argument("prompt", help="what to ask; - reads it from stdin")
    _model_option(chat)
    chat.add_argument("--max-tokens", type=int, metavar="N", help="the longest answer")
    chat.add_argument("--temperature", type=float, metavar="T", help="0: always the likeliest token")
    chat.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same answer")
    chat.add_argument("--json", action="store_true", help="one JSON object with text, usage and times")
    chat.set_defaults(command=_chat)

    serve = commands.add_parser("serve", help="the API alone, without the page")
    serve.add_argument("--port", type=_port, metavar="N", help="0: a free one")
    _model_option(serve)
    serve.set_defaults(command=_serve)

    key = commands.add_parser("key", help="print the key that API clients send")
    key.set_defaults(command=_key)

    doctor = commands.add_parser("doctor", help="what this machine has, and whether the model answers")
    _model_option(doctor)
    doctor.add_argument("--json", action="store_true", help="one JSON object")
    doctor.set_defaults(command=_doctor)

    models = commands.add_parser("models", help="list the models, or fetch one")
    models.add_argument("--json", action="store_true", help="one JSON object")
    models.set_defaults(command=_models)
    pull = models.add_subparsers(metavar="").add_parser("pull", help="fetch a model")
    pull.add_argument("id", help="as in `octavo models`")
    pull.set_defaults(command=_pull)
    return parser


def _model_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="ID", help="an id from `octavo models`, or the path of a GGUF file"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; they run from 0 to 65535.")
    return int(text)


def _run(wanted: argparse.Namespace, home: Home) -> None:
    raise AppError("The page is opened by `octavo run` or `python -m ui`.")  # it is no part of this layer


def _chat(wanted: argparse.Namespace, home: Home) -> None:
    from .ask import ask

    settings = load_settings(home, model=wanted.model)
    given: dict[str, Any] = {
        name: value
        for name in ("max_tokens", "temperature", "seed")
        if (value := getattr(wanted, name)) is not None
    }
    prompt = sys.stdin.read() if wanted.prompt == "-" else wanted.prompt
    ask(settings, prompt, dataclasses.replace(settings.sampling, **given), wanted.json)


def _serve(wanted: argparse.Namespace, home: Home) -> None:
    from .server import HOST, listen, serve
    from .services import build_api

    settings = load_settings(home, model=wanted.model)
    taken = listen(settings.port if wanted.port is None else wanted.port)
    settings = dataclasses.replace(settings, port=taken.getsockname()[1])
    services = build_api(settings)
    address = f"http://{HOST}:{settings.port}/v1"
    try:
        serve(services, taken, lambda: print(f"{address} is ready. key: {services.keys.api_key}", flush=True))
    finally:
        services.close()


def _key(wanted: argparse.Namespace, home: Home) -> None:
    print(Keys(home).api_key)


def _doctor(wanted: argparse.Namespace, home: Home) -> int:
    from .doctor import examine, show

    meter = Meter()
    findings = examine(load_settings(home, model=wanted.model), meter)
    meter.clear()
    show_json(findings) if wanted.json else show(findings)
    return FAILED if findings["problem"] else 0


def _models(wanted: argparse.Namespace, home: Home) -> None:
    store = ModelStore(home, read_catalogue())
    listed = [(model, model.variants[0], store.state(model)) for model in store.catalogue.models]
    if wanted.json:
        show_json(
            {
                "models": [
                    {
                        "id": model.id,
                        "name": model.name,
                        "licence": model.licence,
                        "context": model.context,
                        "parameters": model.parameters,
                        "format": variant.format,
                        "bytes": variant.bytes,
                        "state": state,
                        "path": str(store.place(model)),
                    }
                    for model, variant, state in listed
                ]
            }
        )
        return
    show_table(
        [
            (model.id, in_words(variant.bytes), variant.format, model.licence, state)
            for model, variant, state in listed
        ]
    )


def _pull(wanted: argparse.Namespace, home: Home) -> None:
    from .pull import pull

    meter = Meter(lines=True)
    try:
        path = pull(ModelStore(home, read_catalogue()), wanted.id, meter)
    finally:
        meter.clear()
    print(f"{wanted.id} is ready: {path}")
