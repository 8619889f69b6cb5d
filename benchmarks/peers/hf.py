"""transformers as a side: its own forward pass in bfloat16, one call a token for all prompts together.

Prompts of one run must be equally long: no padding is computed then. It has no scheduler, so nothing can come
late.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from pipe import serve
from transformers import AutoModelForCausalLM, DynamicCache


class Transformers:
    """A model and the cache of its last run."""

    def __init__(self, model: str, threads: int) -> None:
        self.path, self.threads = model, threads
        self.cache, self.kept = DynamicCache(), list[int]()
        torch.set_num_threads(threads)

    def load(self, seqs: int, context: int) -> dict:
        """Load the folder, or load it again, up to the first token."""
        self.model = None
        begin = time.perf_counter()
        self.model = AutoModelForCausalLM.from_pretrained(self.path, dtype=torch.bfloat16).eval()
        self.run([[1]], 1)
        return {"seconds": time.perf_counter() - begin, "threads": self.threads}

    @torch.inference_mode()
    def run(
        self, prompts: list[list[int]], tokens: int, late: dict | None = None, share: bool = False
    ) -> dict:
        """Answer all prompts at once."""
        if late:
            raise NotImplementedError("transformers has no scheduler, so no prompt can come late")
        begin, times = time.perf_counter(), []
        ids, columns = torch.tensor(prompts), []
        if share:
            same = [a == b for a, b in zip(self.kept, prompts[0][:-1])]
            common = same.index(False) if False in same else len(same)
            self.cache.crop(common)
            ids = ids[:, common:]
        else:
            self.cache = DynamicCache()
        for _ in range(tokens):
            logits = self.model(ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1).logits
            ids = logits[:, -1:].argmax(-1)
            columns.append(ids)
            times.append(time.perf_counter() - begin)
        self.kept = prompts[0]
        return {"ids": torch.cat(columns, 1).tolist(), "times": [times] * len(prompts)}

    def sizes(self) -> dict:
        """Bytes of the weights, and of the cache as it stands."""
        pairs = [(layer.keys, layer.values) for layer in self.cache.layers]
        kv = sum(tensor.nbytes for pair in pairs for tensor in pair)
        return {"weights": sum(p.nbytes for p in self.model.parameters()), "kv": kv}

    @torch.inference_mode()
    def score(self, ids: list[int], keep: int, path: str) -> dict:
        """The log probability of each token after the first; the first `keep` logits go to a file."""
        logits = self.model(torch.tensor([ids])).logits[0].float()
        np.save(path, logits[:keep].numpy())
        picked = logits[:-1].log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])
        return {"logprobs": picked[:, 0].tolist()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    serve(Transformers(**vars(parser.parse_args())))
