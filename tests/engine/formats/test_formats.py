"""Every served GGUF type, converted exactly: the bits of gguf-py's dequantize, on random and real data."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from engine.checkpoints import GgufFile, TensorInfo, read_gguf
from engine.errors import BadCheckpoint, UnsupportedModel
from engine.formats import rope_rows, to_vector, to_weight
from kernels import Dense, Int4, Int4K, Int6, Int8
from tests.tiny_models import neighbours, random_rows, write_tiny_gguf

SERVED = {
    "F32": Dense,
    "F16": Dense,
    "BF16": Dense,
    "Q4_0": Int4,
    "Q4_1": Int4,
    "Q8_0": Int8,
    "Q4_K": Int4K,
    "Q6_K": Int6,
}


def dequantized(raw: np.ndarray, type_name: str) -> np.ndarray:
    return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[type_name])


def random_bytes(type_name: str, shape: tuple[int, int]) -> np.ndarray:
    raw = random_rows(type_name, shape, 1.0, np.random.default_rng(1))
    return np.ascontiguousarray(raw).view(np.uint8).reshape(shape[0], -1)


@pytest.mark.parametrize("shape", [(1, 256), (7, 512), (3, 2048), (2100, 256)])
@pytest.mark.parametrize("type_name", SERVED)
def test_equals_gguf_pys_dequantize(type_name: str, shape: tuple[int, int]) -> None:
    raw = random_bytes(type_name, shape)
    raw.flags.writeable = False  # as a mapped file's
    weight = to_weight(raw, type_name, shape)
    assert type(weight) is SERVED[type_name] and weight.shape == shape
    assert np.array_equal(weight.dequantize().numpy(), dequantized(raw, type_name))


@pytest.mark.parametrize("shape", [(4, 512), (1, 256)])
@pytest.mark.parametrize("type_name", SERVED)
def test_tensors_are_contiguous_and_their_own(type_name: str, shape: tuple[int, int]) -> None:
    """Nothing may point into the file, which is closed after loading."""
    raw = random_bytes(type_name, shape)
    weight = to_weight(raw, type_name, shape)
    before = weight.dequantize()
    raw[:] = 0
    assert torch.equal(weight.dequantize(), before)
    for field in type(weight).__slots__:
        assert getattr(weight, field).is_contiguous()


@pytest.mark.parametrize("type_name", ["Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"])
def test_any_bytes_convert_exactly(type_name: str) -> None:
    """Blocks with all bits in use, also those that no quantizer writes; only scales are kept finite."""
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[type_name]]
    raw = np.random.default_rng(2).integers(0, 256, (64, 4, size), np.uint8)
    scale_bytes = [size - 1] if type_name == "Q6_K" else [1] if type_name in ("Q4_0", "Q8_0") else [1, 3]
    raw[..., scale_bytes] &= 0xAF  # a float16 below 16, infinity impossible
    raw = raw.reshape(64, -1)
    weight = to_weight(raw, type_name, (64, 4 * block))
    assert np.array_equal(weight.dequantize().numpy(), dequantized(raw, type_name))


def test_equals_gguf_py_on_the_starter_model(starter_model: Path) -> None:
    with read_gguf(starter_model) as checkpoint:
        for name, tensor in checkpoint.tensors.items():
            raw = checkpoint.raw(name)[:1000]
            if len(tensor.shape) == 1:
                assert np.array_equal(to_vector(checkpoint, name, tensor).numpy(), raw.view(np.float32)[0])
            else:
                weight = to_weight(raw, tensor.type, (len(raw), tensor.shape[1]))
                assert np.array_equal(weight.dequantize().numpy(), dequantized(raw, tensor.type)), name


def test_other_types_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match=r"Q5_K are not served; these are: F32, F16, BF16, Q4_0"):
        to_weight(np.zeros((1, 176), np.uint8), "Q5_K", (1, 256))


@pytest.mark.parametrize("type_name,at", [("Q4_0", 0), ("Q4_1", 2), ("Q8_0", 0), ("Q4_K", 2), ("Q6_K", 208)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scales_that_are_not_finite(type_name: str, at: int, bad: float) -> None:
    raw = random_bytes(type_name, (2, 256))
    raw[1, at : at + 2] = np.frombuffer(np.float16(bad).tobytes(), np.uint8)
    with pytest.raises(BadCheckpoint, match=r"1 of \d+ scales"):
        to_weight(raw, type_name, (2, 256))


def test_a_q4_0_scale_too_large_for_its_minimum() -> None:
    raw = random_bytes("Q4_0", (1, 32))
    raw[0, :2] = np.frombuffer(np.float16(8192).tobytes(), np.uint8)
    with pytest.raises(BadCheckpoint, match="1 of 1 scales"):
        to_weight(raw, "Q4_0", (1, 32))


@pytest.fixture
def vectors(tmp_path: Path) -> GgufFile:
    """The same vector in each float type, some broken ones, one of a type that vectors don't have."""
    values = np.array([1.5, -2.0, 0.0, 3e4] * 8, np.float32)
    writer = gguf.GGUFWriter(tmp_path / "vectors.gguf", "llama")
    for kind in ("F32", "F16", "BF16", "Q8_0"):
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(kind.name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.add_tensor("broken", np.array([1, np.nan, np.inf, 0], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return read_gguf(tmp_path / "vectors.gguf")


def vector(checkpoint: GgufFile, name: str) -> torch.Tensor:
    info: TensorInfo = checkpoint.tensors[name]
    return to_vector(checkpoint, name, info)


def test_vectors_become_float32(vectors: GgufFile) -> None:
    for name in ("F32", "F16", "BF16"):
        result = vector(vectors, name)
        assert result.dtype == torch.float32 and result.shape == (32,)
        torch.testing.assert_close(result[:4], torch.tensor([1.5, -2.0, 0.0, 3e4]), rtol=0.01, atol=0)
    vectors.close()


def test_broken_vectors_are_refused(vectors: GgufFile) -> None:
    with pytest.raises(BadCheckpoint, match="2 of 4 values of broken"):
        vector(vectors, "broken")
    with pytest.raises(UnsupportedModel, match="Q8_0 has type Q8_0; these are served: F32, F16, BF16"):
        vector(vectors, "Q8_0")
    vectors.close()


def test_rope_rows_undo_llama_cpps_order() -> None:
    rows = np.arange(3 * 8)
    assert np.array_equal(neighbours(rows, 3)[rope_rows(3, 8)], rows)
    assert rope_rows(1, 8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


@pytest.mark.parametrize("quantization", ["F16", "Q4_1", "Q4_K"])
def test_tiny_models_are_their_files_oracle(tmp_path: Path, quantization: str) -> None:
    """The factory that other tests stand on: its transformers model computes with what its file holds."""
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf", quantization=quantization)
    attention, heads = tiny.model.model.layers[1].self_attn, tiny.model.config.num_attention_heads
    with read_gguf(tiny.path) as checkpoint:
        for name, wanted in {
            "blk.1.attn_q.weight": attention.q_proj.weight,
            "blk.1.attn_output.weight": attention.o_proj.weight,
            "token_embd.weight": tiny.model.model.embed_tokens.weight,
        }.items():
            info, raw = checkpoint.tensors[name], checkpoint.raw(name)
            raw = raw[rope_rows(heads, info.shape[0] // heads)] if "attn_q" in name else raw
            assert torch.equal(to_weight(raw, info.type, info.shape).dequantize(), wanted)
