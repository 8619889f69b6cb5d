"""What the memory allows, as a side of a comparison: a "token" reads as many bytes as the model's weights.

One chat costs every weight once a token (of the embedding one row, unless it is the head too), so no program
can decode faster than a plain loop that only reads. Each core reads a share of its own.
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

from engine.checkpoints import read_gguf
from engine.fitting.cores import usable_cores

from .peers.pipe import serve


def bytes_per_token(model: Path) -> int:
    """The bytes of a GGUF file's weights that one token needs."""
    with read_gguf(model) as checkpoint:
        untied = "output.weight" in checkpoint.tensors
        return sum(
            tensor.nbytes
            for name, tensor in checkpoint.tensors.items()
            if not (untied and name == "token_embd.weight")
        )


@numba.njit(nogil=True, fastmath=True)
def total(values: np.ndarray) -> int:
    """Read all of it."""
    found = 0
    for value in values:
        found += value
    return found


class ReadLoop:
    """A buffer as large as the weights, and a loop over it."""

    def __init__(self, model: Path, threads: int | None) -> None:
        self.size, self.threads = bytes_per_token(model), threads or usable_cores()

    def load(self, seqs: int, context: int) -> dict[str, Any]:
        """Fill the buffer; a page that was never written would be read from one zeroed page."""
        begin = time.perf_counter()
        values = np.ones(self.size // 8, dtype=np.int64)
        self.shares = np.array_split(values, self.threads)
        self.run([[1]], 1)
        return {"seconds": time.perf_counter() - begin, "bytes": self.size}

    def run(self, prompts: list[list[int]], tokens: int, share: bool = False) -> dict[str, Any]:
        """Read the buffer once a token."""
        begin, times = time.perf_counter(), []
        for _ in range(tokens):
            threads = [threading.Thread(target=total, args=(values,)) for values in self.shares]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            times.append(time.perf_counter() - begin)
        return {"ids": [[0] * tokens], "times": [times]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--threads", type=int)
    serve(ReadLoop(**vars(parser.parse_args())))
