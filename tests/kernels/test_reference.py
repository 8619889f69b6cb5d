"""The reference ops against straightforward dense computations and against transformers' own modules."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, silu

from kernels import Dense, ForwardBatch, KVLayer, Norm, Ops, Rope, head_bytes, read_pool, reference, select
from kernels.reference import ReferenceOps

HEADS, KV_HEADS, DIM, BLOCK = 6, 2, 32, 16
LAYERS, BLOCKS, CONTEXT = 3, 64, 160
MAX_TOKENS, MAX_SEQUENCES = 256, 8


@pytest.fixture
def ops() -> ReferenceOps:
    torch.manual_seed(0)
    return ReferenceOps(dtype=torch.float64)


def make_batch(
    sequences: Sequence[tuple[Sequence[int], int, int]], logit_rows: Sequence[int] = ()
) -> ForwardBatch:
    """A step of (block table, first position, new tokens) per sequence, in buffers larger than it."""
    batch = ForwardBatch(
        counts=torch.tensor([sum(count for *_, count in sequences), len(sequences), len(logit_rows)]),
        token_ids=torch.randint(0, 50, (MAX_TOKENS,)),
        positions=torch.zeros(MAX_TOKENS, dtype=torch.int64),
        cu_lens=torch.zeros(MAX_SEQUENCES + 1, dtype=torch.int64),
        context_lens=torch.zeros(MAX_SEQUENCES, dtype=torch.int64),
        slots=(torch.zeros(MAX_TOKENS, dtype=torch.int64),),
        block_tables=(torch.zeros(MAX_SEQUENCES, CONTEXT // BLOCK, dtype=torch.int64),),
        logit_rows=torch.zeros(MAX_TOKENS, dtype=torch.int64),
    )
    batch.logit_rows[: len(logit_rows)] = torch.tensor(logit_rows, dtype=torch.int64)
    end = 0
    for s, (table, first, count) in enumerate(sequences):
        start, end = end, end + count
        places = torch.arange(first, first + count)
        batch.positions[start:end] = places
        batch.cu_lens[s + 1] = end
        batch.context_lens[s] = first + count
        batch.block_tables[0][s, : len(table)] = torch.tensor(table)
        batch.slots[0][start:end] = batch.block_tables[0][s, places // BLOCK] * BLOCK + places % BLOCK
    return batch


def make_layer(ops: Ops, **options: object) -> KVLayer:
    pool = torch.full((BLOCKS, LAYERS, 2, KV_HEADS, BLOCK * DIM), torch.nan, dtype=ops.kv_dtype)
    return KVLayer(pool, 1, 0, BLOCK, HEADS, DIM, **options)  # type: ignore[arg-type]


def make_rope(width: int = DIM) -> Rope:
    angles = torch.outer(torch.arange(CONTEXT), 10000 ** -(torch.arange(0, width, 2) / width))
    return Rope(angles.cos(), angles.sin())


def dense_attention(q: Tensor, k: Tensor, v: Tensor, window: int = 0, soft_cap: float = 0.0) -> Tensor:
    """Row by row, head by head: q [n, H, D], k and v [n, KV, D] -> [n, H * D]."""
    out = torch.zeros_like(q)
    for t, h in itertools.product(range(q.shape[0]), range(q.shape[1])):
        first = max(0, t - window + 1) if window else 0
        head = h // (q.shape[1] // k.shape[1])
        scores = k[first : t + 1, head] @ q[t, h] / DIM**0.5
        scores = soft_cap * torch.tanh(scores / soft_cap) if soft_cap else scores
        out[t, h] = scores.softmax(0) @ v[first : t + 1, head]
    return out.flatten(1)


def run_attention(
    ops: ReferenceOps, kv: KVLayer, qkv: Tensor, steps: Sequence[int], table: Sequence[int]
) -> Tensor:
    """One sequence computed in steps of so many tokens."""
    results, first = [], 0
    for count in steps:
        batch = make_batch([(table, first, count)])
        q, out = ops.activation(MAX_TOKENS, HEADS * DIM), ops.activation(MAX_TOKENS, HEADS * DIM)
        padded = torch.zeros(MAX_TOKENS, qkv.shape[1], dtype=qkv.dtype)
        padded[:count] = qkv[first : first + count]
        ops.rope_write(batch, padded, make_rope(), kv, q)
        ops.attention(batch, q, kv, out)
        results.append(out[:count])
        first += count
    return torch.cat(results)


def halves(x: Tensor, positions: Tensor, rope: Rope) -> Tensor:
    cos, sin = rope.cos[positions, None].double(), rope.sin[positions, None].double()
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def test_select_gives_the_reference() -> None:
    assert select("cpu", "reference", dtype=torch.float64).kv_dtype == torch.float64


def test_what_is_asked_of_keys_and_values_holds_where_nothing_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert select("cpu", dtype=torch.float64, threads=1).name == "numba"
    monkeypatch.setattr("kernels.cpu.compiles_here", lambda: False)
    found = select("cpu", kv_dtype=torch.int8, threads=2)
    assert isinstance(found, ReferenceOps) and found.kv_dtype == torch.int8


def test_embed_takes_rows_of_valid_tokens_only(ops: ReferenceOps) -> None:
    table, hidden = torch.randn(50, 64), ops.hidden(MAX_TOKENS, 64)
    batch = make_batch([([1], 0, 5), ([2], 0, 3)])
    ops.embed(batch, ops.pack([Dense(table)]), hidden)
    assert torch.equal(hidden[:8], table[batch.token_ids[:8]].double())
    assert not hidden[8:].any()


def test_norm_linear_equals_llamas_norm(ops: ReferenceOps) -> None:
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    first, second, bias = torch.randn(24, 64), torch.randn(8, 64), torch.randn(32)
    gain, x = torch.rand(64) + 0.5, torch.randn(MAX_TOKENS, 64, dtype=torch.float64)
    theirs = LlamaRMSNorm(64, eps=1e-5)
    theirs.weight.data = gain
    out = ops.hidden(MAX_TOKENS, 32)
    weight = ops.pack([Dense(first), Dense(second)], bias)
    ops.norm_linear(make_batch([([1], 0, 7)]), x, Norm(gain, 1e-5), weight, out)
    wanted = theirs(x.float()).double() @ torch.cat([first, second]).double().T + bias
    torch.testing.assert_close(out[:7], wanted[:7], atol=1e-5, rtol=1e-5)
    assert not out[7:].any()


def test_linear_add_and_gated_linear(ops: ReferenceOps) -> None:
    gate, up, down, bias = torch.randn(40, 64), torch.randn(40, 64), torch.randn(64, 40), torch.randn(64)
    norm, x = Norm(torch.rand(64), 1e-6), torch.randn(MAX_TOKENS, 64, dtype=torch.float64)
    middle, before, batch = ops.activation(MAX_TOKENS, 40), x.clone(), make_batch([([1], 0, 9)])
    ops.norm_gated_linear(batch, x, norm, ops.pack([Dense(gate), Dense(up)], gated=True), middle)
    n = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.gain
    wanted = silu(n @ gate.double().T) * (n @ up.double().T)
    torch.testing.assert_close(middle[:9], wanted[:9])
    ops.linear_add(batch, middle, ops.pack([Dense(down)], bias), x)
    torch.testing.assert_close(x[:9], before[:9] + wanted[:9] @ down.double().T + bias)
    assert torch.equal(x[9:], before[9:]) and not middle[9:].any()


def test_rows_are_added_in_runs(ops: ReferenceOps) -> None:
    x, hidden, batch = torch.randn(4, 48).double(), torch.randn(4, 48).double(), make_batch([([1], 0, 3)])
    norm, before = Norm(torch.rand(16), 1e-6), hidden.clone()
    ops.add(batch, x, hidden, norm, 0.5, 2.0)
    for run in range(3):
        there = slice(16 * run, 16 * run + 16)
        n = x[:3, there] / (x[:3, there].square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.gain
        torch.testing.assert_close(hidden[:3, there], 2 * before[:3, there] + 0.5 * n)
    assert torch.equal(hidden[3], before[3])
    hidden.fill_(torch.nan)
    ops.add(batch, x, hidden, keep=0.0)
    assert torch.equal(hidden[:3], x[:3]) and hidden[3].isnan().all()


def test_a_gate_lets_through(ops: ReferenceOps) -> None:
    x, up, out = torch.randn(4, 16).double(), torch.randn(4, 40).double()[:, 8:24], ops.activation(4, 16)
    ops.gate(make_batch([([1], 0, 3)]), x, up, out)
    torch.testing.assert_close(out[:3], silu(x[:3]) * up[:3])
    assert not out[3].any()


def test_queries_alone_are_turned_and_values_normalized(ops: ReferenceOps) -> None:
    qkv, batch, rope = (
        torch.randn(4, (HEADS + 2 * KV_HEADS) * DIM).double(),
        make_batch([([3], 8, 4)]),
        make_rope(),
    )
    q, alone, kv, norm = ops.activation(4, HEADS * DIM), ops.activation(4, HEADS * DIM), make_layer(ops), None
    norm = Norm(torch.rand(DIM) + 0.5, 1e-6)
    ops.rope_write(batch, qkv, rope, kv, q, v_norm=norm)
    written, kept = kv.pool[3, 1, 1].view(KV_HEADS, BLOCK, DIM)[:, 8:12], kv.pool.clone()
    values = qkv.view(4, -1, DIM)[:, HEADS + KV_HEADS :]
    wanted = values / (values.square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.gain
    torch.testing.assert_close(written, wanted.transpose(0, 1))
    ops.rope_write(batch, qkv[:, : HEADS * DIM].contiguous() * 2, rope, kv, alone)
    torch.testing.assert_close(alone, q * 2)
    assert torch.equal(kv.pool.nan_to_num(), kept.nan_to_num())


def test_logits_of_wanted_rows(ops: ReferenceOps) -> None:
    head, x, out = torch.randn(50, 64), torch.randn(MAX_TOKENS, 64, dtype=torch.float64), ops.hidden(8, 50)
    weight, norm = ops.pack([Dense(head)]), Norm(torch.ones(64), 0.0)
    ops.logits(make_batch([([1], 0, 9), ([2], 0, 4)], logit_rows=[12, 3]), x, norm, weight, out)
    wanted = x / x.square().mean(-1, keepdim=True).sqrt() @ head.double().T
    torch.testing.assert_close(out[:2], wanted[[12, 3]])
    assert not out[2:].any()


def test_rope_equals_llamas_rotary_embedding(ops: ReferenceOps) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(hidden_size=HEADS * DIM, num_attention_heads=HEADS, max_position_embeddings=CONTEXT)
    positions = torch.arange(CONTEXT)[None]
    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1, dtype=torch.float32), positions)
    qkv = torch.randn(CONTEXT, (HEADS + 2 * KV_HEADS) * DIM, dtype=torch.float64)
    heads = qkv.view(1, CONTEXT, -1, DIM).transpose(1, 2)
    theirs_q, theirs_k = apply_rotary_pos_emb(heads[:, :HEADS], heads[:, HEADS : HEADS + KV_HEADS], cos, sin)
    table, kv, q = list(range(11, 21)), make_layer(ops), ops.activation(MAX_TOKENS, HEADS * DIM)
    ops.rope_write(make_batch([(table, 0, CONTEXT)]), qkv, make_rope(), kv, q)
    torch.testing.assert_close(q[:CONTEXT], theirs_q[0].transpose(0, 1).flatten(1), atol=1e-5, rtol=0)
    written = kv.pool[table, 1].view(-1, 2, KV_HEADS, BLOCK, DIM).permute(1, 0, 3, 2, 4).flatten(1, 2)
    torch.testing.assert_close(written[0], theirs_k[0].transpose(0, 1), atol=1e-5, rtol=0)
    assert torch.equal(written[1], heads[0, HEADS + KV_HEADS :].transpose(0, 1))
    assert kv.pool[:, [0, 2]].isnan().all(), "another layer was touched"


def test_rope_over_part_of_a_head(ops: ReferenceOps) -> None:
    qkv, q, kv = (
        torch.randn(4, (HEADS + 2 * KV_HEADS) * DIM).double(),
        ops.activation(4, HEADS * DIM),
        make_layer(ops),
    )
    ops.rope_write(make_batch([([3], 8, 4)]), qkv, rope := make_rope(DIM // 2), kv, q)
    before, after = (x.view(4, -1, DIM) for x in (qkv[:, : HEADS * DIM], q))
    half = DIM // 2
    assert torch.equal(after[..., half:], before[..., half:])
    torch.testing.assert_close(after[..., :half], halves(before[..., :half], torch.arange(8, 12), rope))


@pytest.mark.parametrize("window,soft_cap", [(0, 0.0), (0, 2.0), (5, 0.0), (16, 0.0), (37, 2.0), (1000, 0.0)])
@pytest.mark.parametrize("steps", [[120], [1] * 40, [50, 1, 1, 60, 3], [16, 32, 64], [17, 100]])
def test_attention_in_steps(ops: ReferenceOps, steps: list[int], window: int, soft_cap: float) -> None:
    """However a sequence is cut into steps, every token gets what a dense computation gives."""
    kv, table = make_layer(ops, window=window, soft_cap=soft_cap), [9, 4, 30, 31, 2, 63, 1, 17]
    qkv = torch.randn(sum(steps), (HEADS + 2 * KV_HEADS) * DIM, dtype=torch.float64)
    q, k, v = qkv.view(len(qkv), -1, DIM).split((HEADS, KV_HEADS, KV_HEADS), 1)
    q, k = (halves(x, torch.arange(len(qkv)), make_rope()) for x in (q, k))
    wanted = dense_attention(q, k, v, window, soft_cap)
    torch.testing.assert_close(run_attention(ops, kv, qkv, steps, table), wanted, atol=1e-12, rtol=1e-9)


def test_attention_equals_sdpa(ops: ReferenceOps) -> None:
    kv, qkv = make_layer(ops), torch.randn(100, (HEADS + 2 * KV_HEADS) * DIM, dtype=torch.float64)
    q, k, v = qkv.view(100, -1, DIM).split((HEADS, KV_HEADS, KV_HEADS), 1)
    q, k = (halves(x, torch.arange(100), make_rope()) for x in (q, k))
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    wanted = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(0, 1).flatten(1)
    torch.testing.assert_close(run_attention(ops, kv, qkv, [100], list(range(20, 27))), wanted)


def test_ragged_batch_equals_each_alone(ops: ReferenceOps) -> None:
    """Four sequences of different lengths in one step, one with nothing new, two sharing first blocks."""
    tables = [[5, 6, 7, 8], [5, 6, 40, 41], [9], [10, 11]]
    past, fresh = [33, 33, 0, 20], [20, 1, 7, 0]
    qkv = torch.randn(MAX_TOKENS, (HEADS + 2 * KV_HEADS) * DIM, dtype=torch.float64)
    shared = torch.randn(MAX_TOKENS, (HEADS + 2 * KV_HEADS) * DIM, dtype=torch.float64)
    q, out = ops.activation(MAX_TOKENS, HEADS * DIM), ops.activation(MAX_TOKENS, HEADS * DIM)
    kv = make_layer(ops)
    for table, count in zip(tables, past, strict=True):
        ops.rope_write(make_batch([(table, 0, count)]), shared, make_rope(), kv, q)
    batch = make_batch(list(zip(tables, past, fresh, strict=True)))
    ops.rope_write(batch, qkv, make_rope(), kv, q)
    ops.attention(batch, q, kv, out)
    for s in range(4):
        start, end = int(batch.cu_lens[s]), int(batch.cu_lens[s + 1])
        whole = torch.cat([shared[: past[s]], qkv[start:end]])
        alone = run_attention(ops, make_layer(ops), whole, [len(whole)], list(range(1, 11)))
        torch.testing.assert_close(out[start:end], alone[past[s] :], atol=1e-12, rtol=1e-9)
    assert not out[sum(fresh) :].any()


def test_blocks_that_slid_out_of_the_window_are_not_read(ops: ReferenceOps) -> None:
    kv, table = make_layer(ops, window=20), [3, 4, 5, 6]
    qkv = torch.randn(51, (HEADS + 2 * KV_HEADS) * DIM, dtype=torch.float64)
    wanted = run_attention(ops, kv, qkv, [50, 1], table)[50:]
    kv.pool[table[0]] = torch.nan
    q, out = ops.activation(1, HEADS * DIM), ops.activation(1, HEADS * DIM)
    batch = make_batch([([0, *table[1:]], 50, 1)])
    ops.rope_write(batch, qkv[50:], make_rope(), kv, q)
    ops.attention(batch, q, kv, out)
    assert torch.equal(out, wanted)


def test_sinks_take_weight_and_give_nothing(ops: ReferenceOps) -> None:
    """As in gpt-oss: softmax over the scores and one more, whose value is 0."""
    sinks = torch.randn(HEADS).double()
    kv, qkv = make_layer(ops, sinks=sinks), torch.randn(40, (HEADS + 2 * KV_HEADS) * DIM, dtype=torch.float64)
    q, k, v = qkv.view(40, -1, DIM).split((HEADS, KV_HEADS, KV_HEADS), 1)
    q, k = (halves(x, torch.arange(40), make_rope()) for x in (q, k))
    k, v = (x.repeat_interleave(HEADS // KV_HEADS, 1) for x in (k, v))
    scores = (torch.einsum("thd,nhd->htn", q, k) / DIM**0.5).masked_fill(
        ~torch.ones(40, 40).tril().bool(), -9e9
    )
    weights = scores.exp() / (scores.exp().sum(-1, keepdim=True) + sinks.exp()[:, None, None])
    wanted = torch.einsum("htn,nhd->thd", weights, v).flatten(1)
    torch.testing.assert_close(run_attention(ops, kv, qkv, [30, 10], list(range(1, 6))), wanted)


@pytest.mark.parametrize("kv_dtype,limit", [(torch.int8, 0.01), (torch.float8_e4m3fn, 0.04)])
def test_keys_and_values_of_8_bits_say_nearly_the_same(kv_dtype: torch.dtype, limit: float) -> None:
    full, small = ReferenceOps(dtype=torch.float64), ReferenceOps(dtype=torch.float64, kv_dtype=kv_dtype)
    qkv, table = torch.randn(60, (HEADS + 2 * KV_HEADS) * DIM, dtype=torch.float64), [7, 2, 9, 4]
    size = LAYERS * 2 * KV_HEADS * BLOCK * head_bytes(DIM, kv_dtype)
    values, scales = read_pool(
        torch.zeros(BLOCKS, size, dtype=torch.uint8), LAYERS, KV_HEADS, BLOCK, DIM, kv_dtype
    )
    kv = KVLayer(values, 1, 0, BLOCK, HEADS, DIM, scales=scales)
    wanted = run_attention(full, make_layer(full), qkv, [40, 20], table)
    got = run_attention(small, kv, qkv, [40, 20], table)
    assert 0 < (got - wanted).norm() / wanted.norm() < limit


@pytest.mark.parametrize("window", [0, 7])
def test_torchs_own_attention_gives_the_same(ops: ReferenceOps, window: int) -> None:
    """What cards without Triton take, where no cap or sink forbids it."""
    kv = make_layer(ops, window=window)
    queries, keys, values = (
        torch.randn(*shape).double() for shape in ((9, HEADS, DIM), *[(KV_HEADS, 20, DIM)] * 2)
    )
    places, positions = torch.arange(20), torch.arange(11, 20)[:, None]
    seen = (places <= positions) & ((places > positions - window) if window else True)
    wanted = reference._weighted(queries, keys, values, seen, kv)
    torch.testing.assert_close(reference._fused(queries, keys, values, seen, kv), wanted)


def test_copy_blocks_reads_before_it_writes(ops: ReferenceOps) -> None:
    pool = torch.arange(6.0).view(6, 1, 1, 1, 1).repeat(1, LAYERS, 2, KV_HEADS, BLOCK * DIM)
    ops.copy_blocks(pool, [1, 2], [2, 5])
    assert pool[:, 0, 0, 0, 0].tolist() == [0, 1, 1, 3, 4, 2]


def test_record_replays_what_the_buffers_hold_by_then(ops: ReferenceOps) -> None:
    table, hidden, batch = torch.randn(50, 64), ops.hidden(MAX_TOKENS, 64), make_batch([([1], 0, 5)])
    packed = ops.pack([Dense(table)])
    replay = ops.record(lambda: ops.embed(batch, packed, hidden))
    batch.token_ids[:5] = torch.tensor([4, 3, 2, 1, 0])
    replay()
    assert torch.equal(hidden[:5], table[[4, 3, 2, 1, 0]].double())


def test_half_precision_keeps_the_residual_stream_in_float32() -> None:
    ops = ReferenceOps(dtype=torch.bfloat16)
    assert (ops.hidden(1, 1).dtype, ops.activation(1, 1).dtype) == (torch.float32, torch.bfloat16)
    norm, x, out = Norm(torch.ones(64), 1e-6), torch.randn(4, 64), ops.hidden(4, 8)
    ops.norm_linear(make_batch([([1], 0, 4)]), x, norm, ops.pack([Dense(matrix := torch.randn(8, 64))]), out)
    wanted = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() @ matrix.T
    torch.testing.assert_close(out, wanted, atol=0.2, rtol=0.02)
