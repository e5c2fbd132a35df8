"""Attention over many short sentences side by side in one tile is each sentence's own."""

import pytest
import torch

from bsl.models.encoder import unpadded as module
from bsl.models.encoder.unpadded import SHORT

HEADS, WIDTH = 2, 8


def given(sentences: int, tokens: int, *, learns: bool = False) -> list[torch.Tensor]:
    """Queries, keys and values (B, H, T, d), as views of concatenated tokens."""
    torch.manual_seed(0)
    rows = (torch.randn(sentences * tokens, HEADS, WIDTH, requires_grad=learns) for _ in range(3))
    return [row.unflatten(0, (sentences, tokens)).transpose(1, 2) for row in rows]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("sentences", "tokens"), [(1, 3), (4, 13), (5, 13), (23, 3), (2, SHORT), (7, SHORT // 2 + 1)])
def test_tiled_attention_equals_attention_of_each_sentence_alone(sentences, tokens, causal):
    qkv = given(sentences, tokens)
    found = module._tiled_attention(qkv, 0.0, None, causal=causal)
    alone = [
        module._plain_attention([x[row : row + 1] for x in qkv], 0.0, None, causal=causal) for row in range(sentences)
    ]
    torch.testing.assert_close(found, torch.cat(alone), rtol=1e-5, atol=1e-6)


def test_tile_first_used_in_inference_mode_supports_training():
    with torch.inference_mode():
        module._tiled_attention(given(9, 7), 0.0, None, causal=False)
    qkv = given(9, 7, learns=True)
    found = torch.autograd.grad(module._tiled_attention(qkv, 0.0, None, causal=False).square().sum(), qkv)
    wanted = torch.autograd.grad(module._plain_attention(qkv, 0.0, None, causal=False).square().sum(), qkv)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
