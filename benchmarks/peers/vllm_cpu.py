"""vLLM's build for processors as a side: its engine, its scheduler, its compiled model, in this process.

bfloat16, every setting as it comes, no prefix cache except where a run asks to share. Loading takes a minute
or more, and a process can do it once.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from pipe import serve

CACHE_GIB = 2


class Vllm:
    """An engine."""

    def __init__(self, model: str, threads: int) -> None:
        self.path, self.threads, self.engine = model, threads, None
        self.count = 0
        # read by vLLM when it is imported
        os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(CACHE_GIB)
        os.environ["OMP_NUM_THREADS"] = str(threads)
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{threads - 1}"
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        os.environ["VLLM_NO_USAGE_STATS"] = "1"

    def load(self, seqs: int, context: int) -> dict:
        """Load the folder, up to the first token."""
        if self.engine:
            raise NotImplementedError("vLLM's engine can be loaded once in a process")
        from vllm import EngineArgs, LLMEngine

        begin = time.perf_counter()
        options = EngineArgs(
            model=self.path,
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_num_seqs=seqs,
            max_model_len=context,
            enable_prefix_caching=True,  # reset before each run that does not share
        )
        self.engine = LLMEngine.from_engine_args(options)
        self.run([[1]], 1)
        return {"seconds": time.perf_counter() - begin, "threads": self.threads}

    def run(
        self, prompts: list[list[int]], tokens: int, late: dict | None = None, share: bool = False
    ) -> dict:
        """Answer all prompts at once."""
        if not share:
            self.engine.reset_prefix_cache()
        ids, times = [], []
        order: dict[str, int] = {}
        begin = time.perf_counter()

        def add(prompt: list[int]) -> None:
            from vllm import SamplingParams
            from vllm.sampling_params import RequestOutputKind

            params = SamplingParams(
                temperature=0,
                max_tokens=tokens,
                ignore_eos=True,
                detokenize=False,
                output_kind=RequestOutputKind.DELTA,
            )
            self.count += 1
            order[str(self.count)] = len(order)
            ids.append([])
            times.append([])
            self.engine.add_request(str(self.count), {"prompt_token_ids": prompt}, params)

        for prompt in prompts:
            add(prompt)
        while self.engine.has_unfinished_requests():
            for output in self.engine.step():
                new = list(output.outputs[0].token_ids)
                ids[order[output.request_id]] += new
                times[order[output.request_id]] += [time.perf_counter() - begin] * len(new)
            if late and len(order) == len(prompts) and len(ids[0]) >= late["after"]:
                add(late["prompt"])
            elif len(order) > len(prompts) and ids[-1]:
                self.engine.abort_request(list(order))
                break
        return {"ids": ids, "times": times}

    def sizes(self) -> dict:
        """Bytes of the weights on disk, and of the room for keys and values that was reserved."""
        weights = sum(file.stat().st_size for file in Path(self.path).glob("*.safetensors"))
        return {"weights": weights, "kv": CACHE_GIB * 2**30}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    serve(Vllm(**vars(parser.parse_args())))
