"""`python -m benchmarks NAME [--model FILE.gguf] [--peer NAME]...` measures, `check` and `table` read.

A table for people comes first, then a JSON line for each row, the one asked for last. `check LOG...` compares
the ratios in what was printed with those in ratios.json (`--keep` puts them there), `table LOG...` makes the
table of RESULTS.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from functools import partial
from pathlib import Path

from app.settings import Home

from . import guard
from .compare import compare
from .environments import KITS, PEERS
from .measures import MEASURES, batch
from .report import Row, about, make_row, markdown, table
from .sides import NAMES, Contender, SideFailed, contender

STARTER = "smollm2-135m"
ALONE = ("startup", "store", "page")
RATES = ("prefill", "decode", "batch")
# a second row: the 4-bit form of the same model that llama.cpp is fastest with
BESIDE = {"llama.cpp": "llama.cpp-q4_0"}


def find_model(given: str, home: Home) -> Path:
    """A file, or the file in the model folder of that name. Raises SystemExit."""
    if (path := Path(given)).is_file():
        return path.resolve()
    found = sorted((home / "models" / given).glob("*.gguf"))
    if not found:
        raise SystemExit(f"{given} is neither a file nor a model in {home / 'models'}.")
    return found[0].resolve()


def opponents(name: str, asked: list[str]) -> list[str]:
    """Who takes part beside ours; the rows that were asked for come last."""
    beside = [BESIDE[peer] for peer in asked if name in RATES and peer in BESIDE]
    limit = ["read"] if name == "decode" else []  # how much of the memory's speed is used
    return list(dict.fromkeys([*limit, *beside, *asked]))


def measure(args: argparse.Namespace) -> list[Row]:
    """One comparison's rows. Raises SideFailed."""
    home = Home.find()
    model, chosen = find_model(args.model, home), MEASURES[args.name]
    if args.name == "batch":
        chosen = dataclasses.replace(chosen, round=partial(batch, chats=args.chats), seqs=args.chats)
    peers = opponents(args.name, args.peer)
    folder = args.peers_dir or home / "cache" / "peers"
    taking_part: list[Contender] = [contender(n, model, args.threads, folder) for n in ("octavo", *peers)]
    versions = {peer: " ".join(KITS[PEERS[peer].kit].packages) for peer in peers if peer in PEERS}
    facts = about(versions=versions)
    found = compare(chosen, taking_part, args.rounds or chosen.rounds)
    ours = {"octavo": found.pop("octavo")}
    return [
        make_row(args.name, figure, model.name, ours | theirs, chosen.lower_is_better, facts)
        for theirs in ([{peer: found[peer]} for peer in peers] or [{}])
        for figure in chosen.compared
    ]


def ours(name: str) -> list[Row]:
    """What is measured of ours alone, a row for each figure."""
    from .page import page
    from .startup import startup
    from .store import store

    facts = about(versions={})
    found = {"startup": startup, "store": store, "page": page}[name]()
    return [make_row(name, figure, "", {"octavo": [found]}, True, facts) for figure in found]


def show(rows: list[Row], as_json: bool) -> None:
    """The table, then the lines."""
    if not as_json:
        print(table(rows))
    for row in rows:
        print(row.json())


def check(logs: list[Path], keep: bool, tolerance: float) -> int:
    """0 when no ratio fell."""
    now = guard.ratios(guard.read_rows(logs))
    worse = guard.fallen(now, guard.read_kept(), tolerance)
    print("\n".join(worse) or f"{len(now)} ratios, none fell by more than {tolerance:.0%}.")
    if keep:
        guard.keep(now)
    return bool(worse and not keep)


def main() -> int:
    """Do what was asked; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=[*MEASURES, *ALONE, "check", "table"])
    parser.add_argument("logs", type=Path, nargs="*", help="for check and table: what a run printed")
    parser.add_argument("--model", default=STARTER, help="a GGUF file, or the name of a model's folder")
    parser.add_argument("--peer", choices=NAMES, action="append", default=[], help="may be given again")
    parser.add_argument("--chats", type=int, default=8, help="for batch")
    parser.add_argument("--rounds", type=int, help="how often each side is measured")
    parser.add_argument("--threads", type=int, help="of every side; without it, all cores")
    parser.add_argument("--peers-dir", type=Path, help="where the peers' environments are kept")
    parser.add_argument("--json", action="store_true", help="no table")
    parser.add_argument("--keep", action="store_true", help="for check: these ratios are the ones to hold")
    parser.add_argument("--tolerance", type=float, default=guard.TOLERANCE, help="for check: of a ratio")
    args = parser.parse_intermixed_args()
    if args.name == "check":
        return check(args.logs, args.keep, args.tolerance)
    if args.name == "table":
        print(markdown(guard.read_rows(args.logs)))
        return 0
    try:
        show(ours(args.name) if args.name in ALONE else measure(args), args.json)
    except SideFailed as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
