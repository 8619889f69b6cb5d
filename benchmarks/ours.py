"""Octavo as a side of a comparison: the engine in a process of its own, asked as peers/pipe.py says.

Prompts are token ids, as for the peers; the rest is the engine as the program runs it: its scheduler, its
text, one thread that listens to each answer.
"""

from __future__ import annotations

import argparse
import secrets
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from app.settings import Home
from engine import LLM, Delta, EngineConfig, Finish, SamplingParams
from engine.fitting.cores import usable_cores
from engine.running.forward import Forward
from engine.scheduling.sequence import Sequence
from engine.scoring import picked
from engine.service import Job, JobStream
from engine.text.detokenizer import Detokenizer
from kernels import Ops, select

from .peers.pipe import serve

LONGEST = 8192  # the context of every model measured is at least this
CHUNK = 256


class Ours:
    """A loaded model; with `float32`, what scores is the plain torch backend."""

    def __init__(self, model: Path, threads: int | None, float32: bool) -> None:
        self.path = model
        # no peer guesses ahead, and how often a guess is right is a matter of the text
        self.config = EngineConfig(threads=threads, context_length=LONGEST, speculation="off")
        self.float32 = float32
        self.llm: LLM | None = None
        self.owner = ""

    def load(self, seqs: int, context: int, keep: str = "") -> dict[str, Any]:
        """Load the file, or load it again. The sizes are for peers, which must know them beforehand."""
        self.close()
        begin, blocks = time.perf_counter(), Path(keep) if keep else None
        packed = Home.find().packed  # where the program keeps them
        self.llm = LLM.load(self.path, self.config, packed=packed, blocks=blocks)
        return {"seconds": time.perf_counter() - begin}

    def close(self) -> dict[str, Any]:
        """Let go of the model, if it is there."""
        if self.llm:
            self.llm.close()
            self.llm = None
        return {}

    def run(
        self,
        prompts: list[list[int]],
        tokens: int,
        late: dict[str, Any] | None = None,
        share: bool = False,
    ) -> dict[str, Any]:
        """Answer all prompts at once, each heard by a thread of its own."""
        if not share:
            self.owner = secrets.token_hex(8)  # prefixes are shared by one owner's chats only
        begin = time.perf_counter()
        answers = [Answer(self.submit(prompt, tokens), begin) for prompt in prompts]
        if late:
            answers[0].wait(late["after"])
            answers.append(Answer(self.submit(late["prompt"], tokens), begin))
            answers[-1].wait(1)
            for answer in answers:
                answer.stream.cancel()
        for answer in answers:
            answer.thread.join()
        return {"ids": [answer.ids for answer in answers], "times": [answer.times for answer in answers]}

    def submit(self, prompt: list[int], tokens: int) -> JobStream:
        """As LLM.submit, which takes messages, does it with a prompt's ids."""
        llm = self.llm
        assert llm, "load comes first"
        params = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
        job = Job(params, 0, Detokenizer(llm.tokenizer, ()), time.monotonic(), llm.tokenizer.fingerprint)
        kept = {"group": "chat", "keep": llm.tiers is not None}
        return llm.service.submit(
            Sequence(secrets.token_hex(8), list(prompt), tokens, owner=self.owner, request=job, **kept)
        )

    def sizes(self) -> dict[str, Any]:
        """Bytes of the weights, and of the blocks that hold something."""
        assert self.llm, "load comes first"
        pool = self.llm.runner.cache.pools[0]
        return {
            "weights": self.llm.facts.weights_bytes,
            "kv": min(pool.nbytes, self.llm.stats().cached_blocks * pool[0].nbytes),
        }

    def score(self, ids: list[int], keep: int, path: str) -> dict[str, Any]:
        """The log probability of each token after the first; the first `keep` logits go to a file."""
        ops = self.ops()
        forward = Forward.of(self.path, ops, CHUNK, 1 - (-len(ids) // ops.block_size))
        logprobs, kept, targets = list[float](), list[np.ndarray](), iter(ids[1:])
        for logits in forward.read(ids):
            kept.append(logits[: max(0, keep - CHUNK * len(kept))].float().numpy())
            logprobs += picked(logits, targets)
        ops.close()
        np.save(path, np.concatenate(kept))
        return {"logprobs": logprobs}

    def ops(self) -> Ops:
        """The backend that scores."""
        if self.float32:
            torch.set_num_threads(usable_cores())
            return select("cpu", "reference", dtype=torch.float32)
        torch.set_num_threads(1)  # as LLM.load does it
        return select("cpu", "auto", **({"threads": self.config.threads} if self.config.threads else {}))


class Answer:
    """One stream, and a thread that notes when its tokens come."""

    def __init__(self, stream: JobStream, begin: float) -> None:
        self.stream, self.begin = stream, begin
        self.ids: list[int] = []
        self.times: list[float] = []
        self.came, self.ended = threading.Condition(), False
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self) -> None:
        """Until the stream ends."""
        for part in self.stream:
            with self.came:
                if isinstance(part, Delta):
                    self.ids += part.token_ids
                    self.times += [time.perf_counter() - self.begin] * len(part.token_ids)
                self.ended = isinstance(part, Finish)
                self.came.notify_all()

    def wait(self, count: int) -> None:
        """Until that many tokens are there, or the end."""
        with self.came:
            self.came.wait_for(lambda: self.ended or len(self.ids) >= count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--float32", action="store_true")
    serve(Ours(**vars(parser.parse_args())))
