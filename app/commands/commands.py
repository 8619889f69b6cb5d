"""What the commands do that need no page. `main` takes the words after `octavo`, which command_line.py reads.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 it could not be done, 2 wrong
usage, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from engine import EngineError

from ..access.keys import Keys
from ..errors import AppError
from ..faults import explain
from ..models.catalogue import read_catalogue
from ..models.model_store import ModelStore
from ..settings import Home, Settings, load_settings, prepare_process
from . import model_commands
from .command_line import make_parser
from .terminal import Meter, show_json

FAILED, INTERRUPTED = 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Wrong usage ends the process with 2, as argparse does."""
    wanted = make_parser(COMMANDS).parse_args(argv)

    def work() -> int:
        home = Home.find()
        prepare_process(home)
        return int(wanted.command(wanted, home) or 0)

    return guarded(work)


def guarded(work: Callable[[], int]) -> int:
    """The exit code of `work`; whatever it raises becomes a sentence and a code."""
    try:
        code = work()
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
        if error.strerror is None:  # a library's own
            return _fail(explain("The command failed", error))
        return _fail(f"{error.filename or 'The output'} can't be used: {error.strerror}.")
    except Exception as error:
        return _fail(explain("The command failed", error))


def _fail(sentence: str) -> int:
    print(f"octavo: {sentence}", file=sys.stderr)
    return FAILED


def _settings(wanted: argparse.Namespace, home: Home) -> Settings:
    """With what the options say. A listed model is used as its entry says, even if its path is given."""
    chosen = wanted.model and ModelStore(home, read_catalogue()).resolve(wanted.model)
    settings = load_settings(home, model=chosen)
    if not getattr(wanted, "quantization", None):
        return settings
    engine = dataclasses.replace(settings.engine, quantization=wanted.quantization)
    return dataclasses.replace(settings, engine=engine)


def _run(wanted: argparse.Namespace, home: Home) -> None:
    raise AppError("The page is opened by `octavo run` or `python -m ui`.")  # it is no part of this layer


def _quit(wanted: argparse.Namespace, home: Home) -> None:
    from ..access.instance import end_running

    print("Octavo has ended." if end_running(home) else "Octavo is not running.")


def _chat(wanted: argparse.Namespace, home: Home) -> None:
    from .ask import ask

    given: dict[str, Any] = {
        name: value
        for name in ("max_tokens", "temperature", "seed")
        if (value := getattr(wanted, name)) is not None
    }
    if wanted.prompt is None and sys.stdin.isatty():
        raise AppError('Say what to ask, as in `octavo chat "Why is the sky blue?"`.')
    prompt = sys.stdin.read() if wanted.prompt in (None, "-") else wanted.prompt
    ask(_settings(wanted, home), prompt, given, wanted.json)


def _serve(wanted: argparse.Namespace, home: Home) -> int:
    from ..api.server import HOST, listen, serve
    from ..services import build_api
    from .anew import start_anew

    settings = _settings(wanted, home)
    taken = listen(settings.port if wanted.port is None else wanted.port)
    settings = dataclasses.replace(settings, port=taken.getsockname()[1])
    services = build_api(settings)
    address = f"http://{HOST}:{settings.port}/v1"
    try:
        lost = serve(
            services, taken, lambda: print(f"{address} is ready. key: {services.keys.api_key}", flush=True)
        )
    finally:
        services.close()
    if not lost:
        return 0
    print("The device failed. Octavo starts anew.", file=sys.stderr)
    return start_anew("--port", str(settings.port))


def _key(wanted: argparse.Namespace, home: Home) -> None:
    print(Keys(home).api_key)


def _inspect(wanted: argparse.Namespace, home: Home) -> int:
    from engine import inspect_checkpoint

    from .inspect import show

    found = inspect_checkpoint(wanted.path)
    show_json(dataclasses.asdict(found)) if wanted.json else show(found)
    return FAILED if found.problems else 0


def _perplexity(wanted: argparse.Namespace, home: Home) -> None:
    from .perplexity import measure

    measure(_settings(wanted, home), wanted.text, wanted.json)


def _doctor(wanted: argparse.Namespace, home: Home) -> int:
    from .doctor import examine, show

    meter = Meter()
    findings = examine(_settings(wanted, home), meter)
    meter.clear()
    show_json(findings) if wanted.json else show(findings)
    return FAILED if findings["problem"] else 0


COMMANDS = {
    "run": _run,
    "quit": _quit,
    "chat": _chat,
    "serve": _serve,
    "key": _key,
    "inspect": _inspect,
    "perplexity": _perplexity,
    "doctor": _doctor,
    **model_commands.COMMANDS,
}
