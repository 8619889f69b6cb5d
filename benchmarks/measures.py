"""What is measured: a measure is one round on one side, which gives named figures.

Prompts are token ids drawn from a fixed seed, answers are greedy and of fixed length: what a dense model
costs does not depend on which tokens they are. A rate counts the tokens after the first, so prompts are not
in it. Nothing is shared between rounds, except where `prefix` measures just that.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from .quality import quality
from .sides import ROOT, Figures, Side

TOKENS = range(1000, 20_000)  # ids that every vocabulary here has, its special ones excepted


@dataclass(frozen=True, slots=True)
class Measure:
    """A round and what it needs to know beforehand."""

    round: Callable[[Side, int], Figures]
    compared: tuple[str, ...]  # each of these figures makes a row
    seqs: int  # how many chats a side must be ready for
    context: int  # tokens of each
    rounds: int = 5
    lower_is_better: bool = False
    loads: bool = True  # the side is loaded before the first round


def prompt(length: int, seed: object) -> list[int]:
    """A prompt of that many tokens; another seed gives one that shares no beginning with it."""
    return random.Random(str(seed)).choices(TOKENS, k=length)


def rate(times: Sequence[Sequence[float]]) -> float:
    """Tokens a second over all chats while all are answering: from the first token of the last that begins
    to the last token of the first that ends.
    """
    begin, end = max(chat[0] for chat in times), min(chat[-1] for chat in times)
    return sum(begin < moment <= end for chat in times for moment in chat) / (end - begin)


def prefill(side: Side, turn: int, length: int = 512) -> Figures:
    """A prompt of 512 tokens, up to the first token of its answer."""
    (times,) = side.ask("run", prompts=[prompt(length, turn)], tokens=1)["times"]
    return {"tokens_per_s": length / times[0], "first_token_s": times[0]}


def decode(side: Side, turn: int) -> Figures:
    """One chat, 64 tokens after a prompt of 512."""
    times = side.ask("run", prompts=[prompt(512, turn)], tokens=65)["times"]
    return {"tokens_per_s": rate(times)}


def batch(side: Side, turn: int, chats: int = 8) -> Figures:
    """Several chats at once, 96 tokens each after prompts of 64."""
    prompts = [prompt(64, f"{turn} {chat}") for chat in range(chats)]
    return {"tokens_per_s": rate(side.ask("run", prompts=prompts, tokens=97)["times"]), "chats": chats}


def prefix(side: Side, turn: int) -> Figures:
    """A second chat under the same system prompt of 2,000 tokens: how much sooner is its first token?"""
    system = prompt(2000, turn)
    waits = [
        side.ask("run", prompts=[system + prompt(16, chat)], tokens=1, share=chat > 0)["times"][0][0]
        for chat in range(2)
    ]
    return {"times_sooner": waits[0] / waits[1], "first_token_s": waits[1]}


def mixed(side: Side, turn: int) -> Figures:
    """Four chats stream, a prompt of 6,000 tokens comes: how far does it stretch their worst gap?"""
    streaming, calm = 4, 32
    answer = side.ask(
        "run",
        prompts=[prompt(64, f"{turn} {chat}") for chat in range(streaming)],
        tokens=2000,
        late={"prompt": prompt(6000, turn), "after": calm},
    )
    *chats, late = answer["times"]
    start = chats[0][calm - 1]
    # the first tokens come while prompts are computed
    gaps = [(b - a, b) for chat in chats for a, b in pairwise(chat[7:])]
    before = max(gap for gap, end in gaps if end <= start)
    during = max(gap for gap, end in gaps if end > start)
    return {
        "stretch": during / before,
        "worst_gap_before_s": before,
        "worst_gap_during_s": during,
        "late_first_token_s": late[0] - start,
    }


def memory(side: Side, turn: int) -> Figures:
    """Resident memory after eight chats, beyond weights and what holds keys and values."""
    batch(side, turn)
    process = psutil.Process(side.process.pid)
    family = [process, *process.children(recursive=True)]
    resident = sum(member.memory_info().rss for member in family)
    sizes = side.ask("sizes")
    beyond = resident - sizes["weights"] - sizes["kv"]
    return {"beyond_mb": beyond / 1e6, "resident_mb": resident / 1e6, "weights_mb": sizes["weights"] / 1e6}


def load(side: Side, turn: int) -> Figures:
    """Loading the model in a running process that has loaded it before, up to its first token."""
    return {"seconds": side.ask("load", seqs=1, context=1024)["seconds"]}


def restart(side: Side, turn: int) -> Figures:
    """A new process, up to the first token of a short question: `octavo chat`, or the peer's script."""
    begin = time.perf_counter()
    if side.name != "octavo":
        with Side(side.who) as fresh:
            fresh.ask("load", seqs=1, context=1024)
            fresh.ask("run", prompts=[prompt(32, turn)], tokens=1)
            return {"seconds": time.perf_counter() - begin}
    options = ["--model", str(side.who.model), "--max-tokens", "8"]
    words = [sys.executable, "-m", "app", "chat", *options, f"Count from {turn}."]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.read(1)
        return {"seconds": time.perf_counter() - begin}


def reopen(side: Side, turn: int, length: int = 3000) -> Figures:
    """A chat of 3,000 tokens goes on in a new process, which finds on the disk what the one before left: how
    many times sooner is its first token than that of the first process, which had to compute as much?
    """
    chat, waits = prompt(length, turn), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        for message in ("first", "second"):
            out_of_memory(Path(folder))
            with Side(side.who) as fresh:
                fresh.ask("load", seqs=1, context=length + 64, keep=folder)
                asked = [chat + prompt(16, message)]
                waits.append(fresh.ask("run", prompts=asked, tokens=16, share=True)["times"][0][0])
                fresh.ask("close")
    return {"times_sooner": waits[0] / waits[1], "first_token_s": waits[1], "anew_s": waits[0]}


def out_of_memory(folder: Path) -> None:
    """Have the system read these files from the disk again, where it lets itself be told."""
    for path in folder.iterdir() if hasattr(os, "posix_fadvise") else ():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


MEASURES = {
    "prefill": Measure(prefill, ("tokens_per_s",), 1, 1024),
    "decode": Measure(decode, ("tokens_per_s",), 1, 1024),
    "batch": Measure(batch, ("tokens_per_s",), 8, 256, rounds=3),
    "prefix": Measure(prefix, ("times_sooner",), 1, 2304, rounds=3),
    "mixed": Measure(mixed, ("stretch",), 5, 8192, rounds=1, lower_is_better=True),
    "memory": Measure(memory, ("beyond_mb",), 8, 256, rounds=1, lower_is_better=True),
    "load": Measure(load, ("seconds",), 1, 1024, rounds=3, lower_is_better=True),
    "restart": Measure(restart, ("seconds",), 1, 1024, rounds=3, lower_is_better=True, loads=False),
    "reopen": Measure(reopen, ("times_sooner", "first_token_s"), 1, 3072, rounds=3, loads=False),
    "quality": Measure(quality, ("mean_kl", "perplexity"), 1, 2048, rounds=1, lower_is_better=True),
}
