"""The commands about models: `octavo models ...` and `octavo token`.

What they do is the same as on the page (library.py). Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import sys
from collections.abc import Callable

from engine import in_words

from ..errors import AlreadyRunning, AppError
from ..models.catalogue import read_catalogue
from ..models.model_store import ModelStore
from ..settings import Home, load_settings
from .terminal import Meter, show_json

FAILED = 1


def _store(home: Home) -> ModelStore:
    return ModelStore(home, read_catalogue())


def _list(wanted: argparse.Namespace, home: Home) -> None:
    from ..models.library import Library
    from .model_list import list_models

    list_models(Library(load_settings(home), _store(home)), wanted.json)


def _show(wanted: argparse.Namespace, home: Home) -> None:
    from ..models.ids import bare
    from .model_list import known_of, show_known, show_model

    store, settings = _store(home), load_settings(home)
    store.check(wanted.id)
    if known := known_of(store, settings, wanted.id):
        return show_known(known, wanted.json)
    show_model(store, store.catalogue[bare(wanted.id)], settings, wanted.json)


def _check(wanted: argparse.Namespace, home: Home) -> int:
    from ..models.catalogue_check import check
    from ..models.hub_client import Hub

    found = []
    for finding in check(read_catalogue(), Hub(load_settings(home))):
        found.append(finding)
        if not wanted.json:
            said = "; ".join(finding.problems) or "as it says"
            print(f"{finding.id}  {finding.format}  {finding.repo}  {said}", flush=True)
    if wanted.json:
        show_json({"findings": [dataclasses.asdict(finding) for finding in found]})
    return FAILED if any(finding.problems for finding in found) else 0


def _pull(wanted: argparse.Namespace, home: Home) -> None:
    from ..models.ids import key
    from ..models.library import Library

    chosen, store = key(wanted.id, wanted.variant) if wanted.variant else wanted.id, _store(home)
    if here := store.own_file(store.resolve(chosen)):
        print(f"{chosen} is ready: {here}")
        return
    fetch = Library(load_settings(home), store).fetch(chosen)
    meter = Meter(lines=True)
    try:
        path = fetch.run(meter)
    finally:
        meter.clear()
    print(f"{chosen} is ready: {path}")


def _remove(wanted: argparse.Namespace, home: Home) -> None:
    from ..access.instance import Instance
    from ..models.ids import key
    from ..models.library import Library

    try:
        instance = Instance(home)  # a running Octavo may hold the model
    except AlreadyRunning as error:
        how = "Delete the model on its page Models, or end it first: `octavo quit`."
        raise AppError(f"{error} {how}") from None
    try:
        chosen = key(wanted.id, wanted.variant) if wanted.variant else wanted.id
        freed = Library(load_settings(home), _store(home)).remove(chosen)
    finally:
        instance.close()
    freed_words = (
        f"is gone, {in_words(freed)} are free again." if freed else "is not listed any more; its file stays."
    )
    print(f"{chosen} {freed_words}")


def _import(wanted: argparse.Namespace, home: Home) -> None:
    from ..models.library import Library

    id = Library(load_settings(home), _store(home)).bring_in(str(wanted.path))
    print(f"{id} is used where it lies: `octavo chat --model {id}`, or choose it on the page.")


def _token(wanted: argparse.Namespace, home: Home) -> None:
    from ..models.tokens import HubToken

    token = HubToken(home.path)
    if wanted.forget:
        token.forget()
        print("There is no token any more.")
        return
    given = getpass.getpass("Token of the Hugging Face hub: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not given.strip():
        raise AppError("No token was given.")
    place = {"keyring": "this system's keyring", "file": str(home / "hub-token")}[token.keep(given)]
    print(f"The token is kept in {place}.")


COMMANDS: dict[str, Callable[[argparse.Namespace, Home], int | None]] = {
    "models": _list,
    "models list": _list,
    "models show": _show,
    "models pull": _pull,
    "models remove": _remove,
    "models import": _import,
    "models check": _check,
    "token": _token,
}
