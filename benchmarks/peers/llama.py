"""llama.cpp as a side: `llama_decode` over up to n_seq_max sequences, as its own server drives it.

Every step holds one token of each running answer, then as much of waiting prompts as a batch of 2,048 takes;
the likeliest token is taken from the logits. All else is as llama.cpp has it by default.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from dataclasses import dataclass, field

import llama_cpp as lib
import numpy as np
from pipe import serve

BATCH = 2048


@dataclass
class Chat:
    """One sequence: tokens still to be computed, how many are, what was answered and when."""

    todo: list[int]
    computed: int = 0
    ids: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


class Llama:
    """A model and a context."""

    def __init__(self, model: str, threads: int) -> None:
        self.path, self.threads = model, threads
        self.model = self.context = None
        self.kept: list[int] = []  # what sequence 0 holds
        lib.llama_backend_init()

    def load(self, seqs: int, context: int) -> dict:
        """Load the file, or load it again, up to the first token."""
        if self.context:
            lib.llama_free(self.context)
            lib.llama_model_free(self.model)
        begin = time.perf_counter()
        options = lib.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = lib.llama_model_load_from_file(self.path.encode(), options)
        sizes = lib.llama_context_default_params()
        sizes.n_ctx, sizes.n_seq_max = seqs * context, seqs
        sizes.n_batch = BATCH
        sizes.n_threads = sizes.n_threads_batch = self.threads
        self.context = lib.llama_init_from_model(self.model, sizes)
        if not self.context:
            raise RuntimeError(f"llama.cpp cannot load {self.path}")
        self.batch = lib.llama_batch_init(BATCH, 0, 1)
        self.vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))
        self.run([[1]], 1)
        return {"seconds": time.perf_counter() - begin, "threads": self.threads}

    def run(
        self, prompts: list[list[int]], tokens: int, late: dict | None = None, share: bool = False
    ) -> dict:
        """Answer all prompts at once."""
        chats = [Chat(list(prompt)) for prompt in prompts]
        memory = lib.llama_get_memory(self.context)
        if share:
            same = (a == b for a, b in zip(self.kept, prompts[0][:-1]))
            chats[0].computed = next((n for n, equal in enumerate(same) if not equal), len(self.kept))
            del chats[0].todo[: chats[0].computed]
            lib.llama_memory_seq_rm(memory, 0, chats[0].computed, -1)
        else:
            lib.llama_memory_clear(memory, True)
        begin, num_streaming = time.perf_counter(), len(chats)
        while any(chat.todo for chat in chats):
            self.step(chats, tokens, begin)
            if late and len(chats) == num_streaming and len(chats[0].ids) >= late["after"]:
                chats.append(Chat(list(late["prompt"])))
            elif len(chats) > num_streaming and chats[-1].ids:
                break
        self.kept = list(prompts[0])
        return {"ids": [chat.ids for chat in chats], "times": [chat.times for chat in chats]}

    def step(self, chats: list[Chat], tokens: int, begin: float) -> None:
        """One call of llama_decode, and a token for each chat that has nothing left to compute."""
        room, rows = BATCH, {}
        self.batch.n_tokens = 0
        for s in sorted(range(len(chats)), key=lambda s: len(chats[s].todo)):
            if count := min(room, len(chats[s].todo)):
                self.add(s, chats[s], count)
                room -= count
                if not chats[s].todo:
                    rows[s] = self.batch.n_tokens - 1
        self.decode()
        for s, row in rows.items():
            logits = lib.llama_get_logits_ith(self.context, row)
            chosen = int(np.ctypeslib.as_array(logits, (self.vocab_size,)).argmax())
            chats[s].ids.append(chosen)
            chats[s].times.append(time.perf_counter() - begin)
            if len(chats[s].ids) < tokens:
                chats[s].todo.append(chosen)

    def add(self, s: int, chat: Chat, count: int, all_rows: bool = False) -> None:
        """Put a chat's next tokens into the batch; logits are wanted for its very last one."""
        batch, first = self.batch, self.batch.n_tokens
        for i, token in enumerate(chat.todo[:count], first):
            batch.token[i], batch.pos[i] = token, chat.computed + i - first
            batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = 1, s, all_rows
        batch.n_tokens += count
        chat.computed += count
        del chat.todo[:count]
        batch.logits[batch.n_tokens - 1] = all_rows or not chat.todo

    def decode(self) -> None:
        """Run the batch."""
        if code := lib.llama_decode(self.context, self.batch):
            raise RuntimeError(f"llama_decode ended with {code}")

    def sizes(self) -> dict:
        """Bytes of the weights, and of keys and values as they were allocated (float16)."""
        model = self.model
        head_dim = lib.llama_model_n_embd(model) // lib.llama_model_n_head(model)
        per_token = 4 * head_dim * lib.llama_model_n_head_kv(model) * lib.llama_model_n_layer(model)
        return {"weights": lib.llama_model_size(model), "kv": per_token * lib.llama_n_ctx(self.context)}

    def score(self, ids: list[int], keep: int, path: str) -> dict:
        """The log probability of each token after the first; the first `keep` logits go to a file."""
        lib.llama_memory_clear(lib.llama_get_memory(self.context), True)
        chat, logprobs, kept = Chat(list(ids)), [], []
        while chat.todo:
            first = chat.computed
            self.batch.n_tokens = 0
            self.add(0, chat, min(256, len(chat.todo)), all_rows=True)
            self.decode()
            rows = np.ctypeslib.as_array(
                lib.llama_get_logits(self.context), (chat.computed - first, self.vocab_size)
            )
            wide = rows.astype(np.float64)
            wide -= wide.max(-1, keepdims=True)
            wide -= np.log(np.exp(wide).sum(-1, keepdims=True))
            targets = ids[first + 1 : chat.computed + 1]
            logprobs += wide[np.arange(len(targets)), targets].tolist()
            kept.append(rows[: max(0, keep - first)].copy())
        np.save(path, np.concatenate(kept))
        return {"logprobs": logprobs}


def quiet(level: int, text: bytes, data: ctypes.c_void_p) -> None:
    """llama.cpp says hundreds of lines at each load."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    log = lib.llama_log_callback(quiet)
    lib.llama_log_set(log, None)
    serve(Llama(**vars(parser.parse_args())))
