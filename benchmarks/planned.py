"""What a model takes of memory beside what was planned for it: `python -m benchmarks.planned MODEL.gguf`.

Private memory of a process that loads it, looked at from outside, over what it had with all libraries loaded:
at most while loading, when loaded, and when every buffer was written to, which is what the plan counts. The
pool of blocks is left out. Linux only.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path


def load(path: Path) -> None:
    """The process that is looked at: a line for each stage, and a line from outside before the next."""
    import kernels
    from engine import LLM, EngineConfig

    def stage(words: str) -> None:
        print(words, flush=True)
        sys.stdin.readline()

    kernels.select("cpu").close()
    stage("libraries")
    llm = LLM.load(path, EngineConfig(), secret=bytes(32))
    stage(f"{llm.plan.weights_bytes + llm.plan.activation_bytes}")
    llm.runner.model.reach(llm.context_length)
    llm.runner.logits.zero_()
    stage("written")
    llm.close()


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


def main(path: Path) -> None:
    """Load it, and print a line."""
    command = [sys.executable, "-m", "benchmarks.planned", str(path), "load"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        _, _, before = watch(child)
        planned, most, loaded = watch(child)
        _, _, written = watch(child)
    size, plan, took = path.stat().st_size / 1e6, int(planned) / 1e6, (written - before) / 1e6
    print(
        f"{path.name}: at most {(most - before) / 1e6 / size:.2f} times the file; loaded "
        f"{(loaded - before) / 1e6:.1f} MB, all written {took:.1f} MB, planned {plan:.1f} MB "
        f"({took / plan - 1:+.1%})"
    )


if __name__ == "__main__":
    load(Path(sys.argv[1])) if sys.argv[2:] == ["load"] else main(Path(sys.argv[1]))
