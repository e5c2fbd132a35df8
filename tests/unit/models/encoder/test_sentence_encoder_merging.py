"""Interpolation of the weights of two encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from bsl.models.encoder.config import read_json
from bsl.models.encoder.sentence_encoder import CachedEncoder, SentenceEncoder
from bsl.models.errors import EncoderError
from tests.tiny_encoder import ORIGINALS, tiny_encoder

if TYPE_CHECKING:
    from pathlib import Path


def test_merged_weights_interpolate_between_both_encoders(tmp_path: Path) -> None:
    start, trained = (SentenceEncoder(*tiny_encoder(tmp_path / str(seed), seed=seed)) for seed in (0, 1))
    between = start.merged(trained, 0.25).network.state_dict()
    first, second = start.network.state_dict(), trained.network.state_dict()
    for name, weight in between.items():
        expected = 0.75 * first[name].double() + 0.25 * second[name].double()
        assert torch.allclose(weight.double(), expected, atol=1e-7), name
    for share, end in ((0.0, start), (1.0, trained)):
        assert (start.merged(trained, share).encode(ORIGINALS) == end.encode(ORIGINALS)).all()


def test_merging_encoders_of_different_shapes_is_rejected(tmp_path: Path) -> None:
    start = SentenceEncoder(*tiny_encoder(tmp_path / "one"))
    other = SentenceEncoder(*tiny_encoder(tmp_path / "two", "modernbert"))
    with pytest.raises(EncoderError, match="weights differ in names or shapes"):
        start.merged(other, 0.5)


@pytest.mark.parametrize(
    ("prompts", "used", "default"),
    [
        ({"query": "query: ", "passage": "passage: "}, "query: ", "query"),
        ({"query": "query: "}, "title: ", "default"),
        ({"query": "query: "}, "", None),
        ({}, "", None),
    ],
)
def test_save_writes_all_prompts_and_marks_the_default(tmp_path: Path, prompts, used, default) -> None:
    network, tokenizer = tiny_encoder(tmp_path / "start")
    network.config = network.config.model_copy(update={"prompt": used})
    SentenceEncoder(network, tokenizer, prompts).save(tmp_path / "made")
    saved = read_json(tmp_path / "made" / "config_sentence_transformers.json")
    own = {default: used} if default else {}
    assert saved == {"similarity_fn_name": "cosine", "prompts": prompts | own, "default_prompt_name": default}
    again = SentenceEncoder.load(tmp_path / "made")
    assert (again.prompt, again.prompts) == (used, prompts | own)


def test_cached_encoder_embeds_each_text_once(tmp_path: Path) -> None:
    network, tokenizer = tiny_encoder(tmp_path / "one")
    cached = CachedEncoder(SentenceEncoder(network, tokenizer), device="cpu")
    first = cached([ORIGINALS[0], ORIGINALS[1], ORIGINALS[0]])
    assert (first[0] == first[2]).all()
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
    assert (cached([ORIGINALS[1]]) == first[1]).all()
