"""Run one measure: `python -m benchmarks NAME --model FILE.gguf`, or `startup` without a model.

Prints what was found, then the same as JSON with what is needed to judge it: commit, machine, load before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from engine import LLM, EngineConfig, detect

from .measures import MEASURES, Figures


def commit() -> str:
    """The commit that is measured, "" outside a checkout."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip()


def measure(name: str, model: Path | None, threads: int | None) -> Figures:
    """The figures of one measure; all but `startup` are taken on a model loaded here."""
    if name == "startup":
        from .startup import startup

        return startup()
    if model is None:
        raise SystemExit(f"{name} needs --model FILE.gguf.")
    llm = LLM.load(model, EngineConfig(threads=threads))
    try:
        return MEASURES[name](llm)
    finally:
        llm.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=[*MEASURES, "startup"])
    parser.add_argument("--model", type=Path, help="a GGUF file")
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0
    figures = measure(args.name, args.model, args.threads)
    device = detect()
    for name, value in figures.items():
        print(f"{name:20} {value:10.4g}")
    about = {
        "name": args.name,
        "model": args.model.name if args.model else "",
        "commit": commit(),
        "machine": f"{device.name}, {device.cores} cores",
        "python": platform.python_version(),
        "load_before": load,
    }
    print(json.dumps(about | figures))


if __name__ == "__main__":
    sys.exit(main())
