"""A side that computes nothing; its clock is a formula: `python -m tests.benchmarks.fake_side --speed 10`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.pipe import serve

VOCABULARY = 50


class Fake:
    """Tokens come at `speed` a second after a first wait of 1 s; 0.1 s where the prompt is shared, or another
    process kept it.
    """

    def __init__(self, speed: float) -> None:
        self.speed, self.loaded, self.has_nothing = speed, 0, False

    def load(self, seqs: int, context: int, keep: str = "") -> dict[str, Any]:
        """Libraries print what they like."""
        print("a library's greeting")
        os.write(1, b"and one from C\n")
        self.loaded += 1
        if keep:
            self.has_nothing = not os.listdir(keep)
            Path(keep, "blocks").touch()
        return {"seconds": 1 / self.speed, "loaded": self.loaded}

    def run(
        self, prompts: list[list[int]], tokens: int, late: dict[str, Any] | None = None, share: bool = False
    ) -> dict[str, Any]:
        """Every gap is 1 / speed; three times that while a late prompt is computed, which takes ten gaps."""
        gap, first = 1 / self.speed, 0.1 if share and not self.has_nothing else 1.0
        if not late:
            return {"times": [[first + i * gap for i in range(tokens)] for _ in prompts]}
        calm = [first + i * gap for i in range(late["after"])]
        times = calm + [calm[-1] + 3 * gap * i for i in range(1, 11)]
        return {"times": [times] * len(prompts) + [[times[-1]]]}

    def close(self) -> dict[str, Any]:
        """There is nothing to let go of."""
        return {}

    def sizes(self) -> dict[str, Any]:
        """Nothing is loaded."""
        return {"weights": 1000, "kv": 1000}

    def score(self, ids: list[int], keep: int, path: str) -> dict[str, Any]:
        """Every token is as likely as every other."""
        np.save(path, np.zeros((min(keep, len(ids)), VOCABULARY), np.float32))
        return {"logprobs": [-float(np.log(VOCABULARY))] * (len(ids) - 1)}

    def refuse(self) -> dict[str, Any]:
        """What cannot be done is said."""
        raise NotImplementedError("not this one")

    def die(self) -> dict[str, Any]:
        """A crash."""
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--speed", type=float, required=True)
    serve(Fake(**vars(parser.parse_args())))
