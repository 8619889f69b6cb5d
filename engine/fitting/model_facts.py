"""What the memory plan needs to know of a checkpoint, and what tells one checkpoint from another.

Sizes in bytes, as the backend will keep them. Reads headers, and a few bytes of every tensor.
"""

from __future__ import annotations

from hashlib import blake2b

from kernels import Ops

from ..checkpoints import Checkpoint
from ..config import EngineConfig
from ..models import ModelConfig
from ..running.kv_cache import kind_facts
from ..text.tokenizer import Tokenizer
from .inventory import take_inventory
from .memory_plan import ModelFacts

SAMPLE = 64  # bytes of every tensor
TOKEN_BYTES = {"bytes": 350, "pieces": 360}  # of a token in a Tokenizer, by its spelling; measured


def model_facts(
    name: str,
    checkpoint: Checkpoint,
    config: ModelConfig,
    ops: Ops,
    quantization: str = "none",
    tokenizer: Tokenizer | None = None,
    step_tokens: int = EngineConfig().max_step_tokens,
) -> ModelFacts:
    """What planning needs to know of a model. `quantization`: what its unquantized layers are made into;
    `step_tokens`: how many a step has at most.
    """
    token_buffers = 2 * config.hidden_size + sum(
        (3 * config.num_heads + 2 * kv_heads) * head_dim + ffn_size
        for kv_heads, head_dim, ffn_size in config.shapes
    )
    token_buffers += 2 * (config.num_layers + 1) * config.input_size
    if config.mixture:  # each of a token's experts has inputs, gates and outputs of its own
        token_buffers += config.mixture.top_k * (3 * config.hidden_size + 2 * config.mixture.size)
    if config.borrowed:  # its intermediate values are kept a little longer
        token_buffers += 8 * (config.hidden_size + config.borrowed.widest)
    widest = max(head_dim for _, head_dim, _ in config.shapes)
    sizes = config.num_heads, widest, step_tokens, config.context_length, config.vocab_size
    return ModelFacts(
        name=name,
        fingerprint=fingerprint(checkpoint),
        context_length=config.context_length,
        kinds=kind_facts(config, ops.kv_dtype),
        weights_bytes=_weights_bytes(checkpoint, config, ops, quantization),
        activation_bytes_per_token=4 * token_buffers,
        logits_bytes_per_seq=4 * config.vocab_size,
        counts_bytes_per_seq=4 * config.vocab_size if ops.name != "reference" else 0,
        block_size=ops.block_size,
        graphs_bytes=ops.workspace_bytes + ops.scratch_bytes(*sizes),
        formats=f"{ops.name}, {quantization}",
        kv_dtype=str(ops.kv_dtype),
        tables_bytes=_rope_bytes(config) + _vocabulary_bytes(tokenizer),
    )


def _rope_bytes(config: ModelConfig) -> int:
    """A cosine and a sine in float32 for every pair and position; layers that turn alike share them."""
    ropes = {layer.rope for layer in config.layers if layer.rope}
    return 8 * config.context_length * sum(len(rope.frequencies) for rope in ropes)


def _vocabulary_bytes(tokenizer: Tokenizer | None) -> int:
    return TOKEN_BYTES[tokenizer.spelling] * tokenizer.vocab_size if tokenizer else 0


def _weights_bytes(checkpoint: Checkpoint, config: ModelConfig, ops: Ops, quantization: str) -> int:
    """In memory, as the backend keeps them: the reference has every weight as a float32."""
    if config.borrowed:
        return config.borrowed.weights_bytes
    tensors = take_inventory(checkpoint, quantization, ops.name == "triton")
    if ops.name == "reference":
        return sum(4 * each.parameters for each in tensors)
    return sum(each.memory_bytes for each in tensors)


def fingerprint(checkpoint: Checkpoint) -> str:
    """Tells one checkpoint from another: by metadata, by every tensor's place and by bytes from its middle.

    Two trainings of one model differ in nothing but their weights. A file that was copied stays the same.
    """
    known = blake2b(digest_size=16)
    for key, value in checkpoint.metadata.items():
        known.update(f"{key}=".encode("utf-8", "surrogatepass"))
        for part in value if isinstance(value, list) else (value,):  # a text of all would be as long again
            known.update(f"{part!r},".encode("utf-8", "surrogatepass"))
    for name, tensor in checkpoint.tensors.items():
        known.update(repr(tensor).encode("utf-8", "surrogatepass"))
        values = checkpoint.raw(name).reshape(-1)
        middle = len(values) // 2
        known.update(values[middle : middle + SAMPLE].tobytes())
    if checkpoint.text is not None:
        known.update(repr(checkpoint.text).encode("utf-8", "surrogatepass"))
    return known.hexdigest()
