"""A model ready to talk: what is loaded from one file, and conversations in, Streams out.

`load` reads the header, plans the memory, packs the weights, proves with one token that all of it works; from
then on `submit` turns messages into ids on the caller's thread and hands them to the engine's.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence as Seq
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

import torch

import kernels
from kernels import Ops

from .checkpoints import GgufFile, read_gguf
from .config import EngineConfig
from .detokenizer import Detokenizer
from .device import detect
from .engine import Engine, make_scheduler
from .errors import EngineError
from .kv_cache import bytes_per_token
from .memory_plan import KindFacts, MemoryFacts, MemoryPlan, ModelFacts, plan_memory
from .models import ModelConfig, load_decoder
from .prompt import build_prompt
from .runner import Runner
from .sequence import Sequence
from .service import EngineService, Job, JobStream
from .templates import TemplateRenderer
from .tokenizer import Tokenizer
from .types import EngineStats, Finish, FinishReason, Message, Priority, Request, SamplingParams

_PROBE = Request(
    (Message("user", "Hello"),),
    SamplingParams(temperature=0, max_tokens=2, ignore_eos=True),
    owner="probe",
    priority=Priority.BACKGROUND,
)


@dataclass(frozen=True, slots=True)
class LLM:
    """A loaded model. Any thread may call its methods."""

    facts: ModelFacts
    plan: MemoryPlan
    tokenizer: Tokenizer
    renderer: TemplateRenderer
    service: EngineService
    runner: Runner

    @staticmethod
    def load(
        path: Path,
        config: EngineConfig = EngineConfig(),
        *,
        name: str = "",
        secret: bytes = b"",
        on_progress: Callable[[str, float], None] = lambda stage, part: None,
    ) -> LLM:
        """Load a GGUF file. `secret` keys the prefix hashes; `on_progress` hears what is done, and how far.

        Raises BadCheckpoint, UnsupportedModel or ModelTooLarge; nothing stays behind then.
        """
        torch.set_num_threads(1)  # torch's own pool spins beside ours and halves its speed
        with read_gguf(path) as checkpoint:
            model_config = ModelConfig.from_gguf(checkpoint)
            on_progress("tokenizer", 0.0)
            tokenizer = Tokenizer(checkpoint.metadata)
            renderer = TemplateRenderer.of(tokenizer)
            ops = kernels.select("cpu", config.backend, **_backend_options(config))
            try:
                renderer.start()  # its process comes up while the weights are read
                device = detect()
                facts = model_facts(name or path.stem, checkpoint, model_config, ops)
                memory = MemoryFacts(device.memory_total, device.memory_available, device.unified)
                plan = plan_memory(memory, facts, config)
                model = load_decoder(
                    checkpoint, model_config, ops, plan.context_length, partial(on_progress, "weights")
                )
                runner = Runner(model, ops, plan)
            except BaseException:
                renderer.close()
                ops.close()
                raise
        scheduler = make_scheduler(plan, facts, config, secret)
        service = EngineService(Engine(scheduler, runner))
        llm = LLM(facts, plan, tokenizer, renderer, service, runner)
        on_progress("warm-up", 0.0)
        llm._warm_up()
        on_progress("ready", 1.0)
        return llm

    @property
    def context_length(self) -> int:
        """The longest conversation, prompt and answer together."""
        return self.plan.context_length

    def submit(self, request: Request) -> JobStream:
        """Start to answer. Raises BadRequest, PromptTooLong, TemplateError or EngineStopped."""
        submitted = time.monotonic()
        prompt = self.prompt(request.messages, request.date)
        params = request.sampling
        seed = params.seed if params.seed is not None else secrets.randbits(63)
        job = Job(
            params, seed, Detokenizer(self.tokenizer, params.stop), submitted, self.tokenizer.fingerprint
        )
        sequence = Sequence(
            id=request.id or secrets.token_hex(8),
            prompt=prompt,
            max_tokens=params.max_tokens,
            owner=request.owner,
            priority=request.priority,
            end_ids=frozenset() if params.ignore_eos else self.tokenizer.eos_ids,
            request=job,
        )
        return self.service.submit(sequence)

    def prompt(self, messages: Seq[Message], date: str = "") -> list[int]:
        """The ids of a conversation, up to where the next answer begins."""
        return build_prompt(self.tokenizer, self.renderer, messages, date, self.context_length)

    def stats(self) -> EngineStats:
        """How busy the engine is, and whether it is sound."""
        return self.service.stats()

    def _warm_up(self) -> None:
        """Compile or load every kernel, render the template once, and see that tokens come out."""
        try:
            for part in self.submit(_PROBE):
                if isinstance(part, Finish) and part.reason is FinishReason.ERROR:
                    raise EngineError(part.error)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Cancel what runs, end the threads and the helper process."""
        self.service.close()
        self.renderer.close()
        self.runner.close()


def _backend_options(config: EngineConfig) -> dict[str, int]:
    return {"threads": config.threads} if config.threads and config.backend != "reference" else {}


def model_facts(name: str, checkpoint: GgufFile, config: ModelConfig, ops: Ops) -> ModelFacts:
    """What the memory plan needs to know of a model."""
    token_buffers = config.hidden_size + 4 * config.num_heads * config.head_dim + 2 * config.ffn_size
    return ModelFacts(
        name=name,
        fingerprint=fingerprint(checkpoint),
        context_length=config.context_length,
        kinds=(KindFacts("full", tuple(range(config.num_layers)), bytes_per_token(config, ops.kv_dtype)),),
        weights_bytes=sum(tensor.nbytes for tensor in checkpoint.tensors.values()),
        activation_bytes_per_token=4 * token_buffers,
        logits_bytes_per_seq=4 * config.vocab_size,
        block_size=ops.block_size,
        formats=ops.name,
        kv_dtype=str(ops.kv_dtype),
    )


def fingerprint(checkpoint: GgufFile) -> str:
    """Tells one checkpoint from another by its header. The weights themselves are checked at download."""
    header = blake2b(digest_size=16)
    for tensor in checkpoint.tensors.values():
        header.update(repr(tensor).encode())
    for key, value in checkpoint.metadata.items():
        header.update(f"{key}={value!r}".encode())
    return header.hexdigest()
