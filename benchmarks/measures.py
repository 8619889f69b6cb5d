"""What is measured on a loaded model: decode speed alone and in company, prefix sharing, memory.

Each measure takes an LLM and gives named figures; every text and seed is fixed. Machines are noisy: run one
on a quiet machine, look at the load it prints, and compare only what was measured in one run.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

import psutil

from engine import LLM, Finish, Message, Request, SamplingParams

Figures = dict[str, float]
QUESTION = "Tell me a long story about a printer who folds one sheet into eight leaves."
# about 1,500 tokens of system prompt
DOCUMENT = " ".join(
    f"Rule {i}: a sheet folded {i} times has {2**i} leaves, and is called format {i}." for i in range(58)
)


def answer(llm: LLM, question: str, tokens: int, system: str = "", owner: str = "benchmark") -> Finish:
    """Ask, wait for the end, give back how it ended; exactly `tokens` tokens are made."""
    messages = (Message("system", system),) if system else ()
    sampling = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
    *_, finish = llm.submit(Request((*messages, Message("user", question)), sampling, owner=owner))
    assert isinstance(finish, Finish) and not finish.error, finish
    return finish


def prefill(llm: LLM) -> Figures:
    """Tokens of a prompt of about 512 computed in a second, nothing of it cached."""
    rates = []
    for run in range(5):
        usage = answer(llm, f"{run}{run} " + DOCUMENT[:1650], 1).usage
        rates.append((usage.prompt_tokens - usage.cached_tokens) / usage.first_token_s)
    return {"tokens_per_s": statistics.median(rates), "prompt_tokens": usage.prompt_tokens}


def decode(llm: LLM) -> Figures:
    """One chat: tokens a second after the first, and the time to the first of a short question."""
    finishes = [answer(llm, f"{i}. {QUESTION}", 96) for i in range(5)]
    return {
        "tokens_per_s": statistics.median(f.usage.tokens_per_s for f in finishes),
        "first_token_s": statistics.median(f.usage.first_token_s for f in finishes),
    }


def batch(llm: LLM, chats: int = 8) -> Figures:
    """Several chats at once: tokens a second over all of them, prompts included in the time."""
    rates = []
    for run in range(3):
        threads = [
            threading.Thread(target=answer, args=(llm, f"{run} {i}. {QUESTION}", 96)) for i in range(chats)
        ]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rates.append(chats * 96 / (time.perf_counter() - begin))
    return {"chats": chats, "tokens_per_s": statistics.median(rates)}


def prefix(llm: LLM) -> Figures:
    """A second chat under the same long system prompt: only its own question is computed."""
    ratios, cached, prompt = [], 0, 0
    for run in range(3):
        system = f"Handbook {run}. {DOCUMENT}"
        first = answer(llm, "What is a leaf?", 2, system).usage
        second = answer(llm, "What is an octavo?", 2, system).usage
        ratios.append(first.first_token_s / second.first_token_s)
        cached, prompt = second.cached_tokens, second.prompt_tokens
    return {"times_sooner": statistics.median(ratios), "cached_tokens": cached, "prompt_tokens": prompt}


def memory(llm: LLM) -> Figures:
    """Resident memory beyond weights and KV pool after eight chats, in MB."""
    batch(llm)
    process = psutil.Process()
    resident = process.memory_info().rss + sum(child.memory_info().rss for child in process.children(True))
    pool = llm.runner.cache.pools[0]
    touched = min(pool.nbytes, llm.stats().cached_blocks * pool[0].nbytes)
    return {
        "resident_mb": resident / 1e6,
        "weights_mb": llm.facts.weights_bytes / 1e6,
        "pool_in_use_mb": touched / 1e6,
        "beyond_mb": (resident - llm.facts.weights_bytes - touched) / 1e6,
    }


MEASURES: dict[str, Callable[[LLM], Figures]] = {
    m.__name__: m for m in (prefill, decode, batch, prefix, memory)
}
