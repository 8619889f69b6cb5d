"""What models take of memory beside their plan: `python -m benchmarks.planned MODEL[=QUANTIZATION] ...`.

Private memory of a process that loads files or folders, each when the one before was closed, looked at from
outside: over what it had before, with all libraries loaded, at most while loading, when loaded, and when all
that the plan counts was in use once. The pool of blocks is left out. Linux only.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence as Seq
from pathlib import Path

import kernels
from engine import LLM, EngineConfig, Message, Request, SamplingParams, share_one_heap, trim
from engine.running.measured_runner import largest_step


def load(wanted: Seq[str]) -> None:
    """The process that is looked at: a line for each stage, and a line from outside before the next."""

    def stage(words: str) -> None:
        print(words, flush=True)
        sys.stdin.readline()

    share_one_heap()  # as the app does when it starts
    kernels.select("cpu").close()
    for path, precision in map(read_wanted, wanted):
        trim()  # as it does when a model is closed
        stage("before")
        llm = LLM.load(path, EngineConfig(quantization=precision), secret=bytes(32))
        stage(f"{llm.plan.weights_bytes + llm.plan.activation_bytes}")
        use_all(llm)
        stage("written")
        llm.close()
        del llm


def read_wanted(words: str) -> tuple[Path, str]:
    """A file or folder, and what its weights are made of."""
    path, _, precision = words.partition("=")
    return Path(path), precision or "auto"


def use_all(llm: LLM) -> None:
    """The largest step, as many answers as there may be, each with penalties, and a whole context."""
    llm.runner.run(largest_step(llm.plan))
    params = SamplingParams(temperature=1.0, repetition_penalty=1.1, max_tokens=4, ignore_eos=True, seed=0)
    messages = tuple(Message("user", f"{i}") for i in range(llm.plan.max_num_seqs))
    for stream in [llm.submit(Request((message,), params)) for message in messages]:
        list(stream)
    llm.runner.model.reach(llm.context_length)
    llm.runner.logits.zero_()
    for scratch in getattr(llm.runner.ops, "_scratch", {}).values():  # some is for the longest texts alone
        scratch.zero_()
    llm.free_cached()


def private(process: int) -> int:
    """Bytes that belong to that process alone."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def watch(child: subprocess.Popen[str]) -> tuple[str, int, int]:
    """The next stage's line, the most memory until then, and that of then."""
    assert child.stdin and child.stdout
    lines, read = list[str](), child.stdout.readline
    reader = threading.Thread(target=lambda: lines.append(read()))
    reader.start()
    most = 0
    while reader.is_alive():
        most = max(most, private(child.pid))
        reader.join(0.003)
    now = private(child.pid)
    child.stdin.write("\n")
    child.stdin.flush()
    return lines[0], max(most, now), now


def main(wanted: Seq[str]) -> None:
    """Load them, and print a line for each."""
    command = [sys.executable, "-m", "benchmarks.planned", "load", *wanted]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        for path, precision in map(read_wanted, wanted):
            _, _, before = watch(child)
            planned, most, loaded = watch(child)
            _, _, written = watch(child)
            files = path.glob("*.safetensors") if path.is_dir() else (path,)
            most_times = (most - before) / sum(file.stat().st_size for file in files)
            plan, took = int(planned) / 1e6, (written - before) / 1e6
            print(
                f"{path.name}, {precision}: at most {most_times:.2f} times the file; loaded "
                f"{(loaded - before) / 1e6:.1f} MB, all written {took:.1f} MB, planned {plan:.1f} MB "
                f"({took / plan - 1:+.1%})"
            )


if __name__ == "__main__":
    load(sys.argv[2:]) if sys.argv[1:2] == ["load"] else main(sys.argv[1:])
