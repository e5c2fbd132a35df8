"""Weights between two encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from models.encoder.encode import encode
from models.encoder.files import keep_prompts, read_json, write_json
from models.encoder.merging import interpolated, merged
from models.encoder.remembered import Remembered
from models.errors import EncoderError
from tests.tiny_encoder import ORIGINALS, tiny_encoder

if TYPE_CHECKING:
    from pathlib import Path


def test_weights_lie_between_and_the_ends_are_the_encoders(tmp_path: Path) -> None:
    start, tokenizer = tiny_encoder(tmp_path / "one", seed=0)
    trained, _ = tiny_encoder(tmp_path / "two", seed=1)
    between = merged(start, trained, 0.25).state_dict()
    first, second = start.state_dict(), trained.state_dict()
    for name, weight in between.items():
        expected = 0.75 * first[name].double() + 0.25 * second[name].double()
        assert torch.allclose(weight.double(), expected, atol=1e-7), name
    assert (encode(merged(start, trained, 0.0), tokenizer, ORIGINALS) == encode(start, tokenizer, ORIGINALS)).all()
    whole = encode(merged(start, trained, 1.0), tokenizer, ORIGINALS)
    assert (whole == encode(trained, tokenizer, ORIGINALS)).all()


def test_encoders_of_two_shapes_are_refused(tmp_path: Path) -> None:
    start, _ = tiny_encoder(tmp_path / "one")
    other, _ = tiny_encoder(tmp_path / "two", "modernbert")
    with pytest.raises(EncoderError, match="one shape"):
        merged(start, other, 0.5)


def test_all_prompts_of_the_start_are_kept(tmp_path: Path) -> None:
    said = {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": "query", "other": 1}
    for name, content in (("start", said), ("made", {"prompts": {"default": "query: "}, "version": 5})):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "config_sentence_transformers.json", content)
    keep_prompts(tmp_path / "start", tmp_path / "made")
    kept = read_json(tmp_path / "made" / "config_sentence_transformers.json")
    assert kept == {"prompts": said["prompts"], "default_prompt_name": "query", "version": 5}


def test_a_text_is_embedded_once(tmp_path: Path) -> None:
    encoder, tokenizer = tiny_encoder(tmp_path / "one")
    remembered = Remembered(encoder, tokenizer, device="cpu")
    first = remembered([ORIGINALS[0], ORIGINALS[1], ORIGINALS[0]])
    assert (first[0] == first[2]).all()
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.zero_()
    assert (remembered([ORIGINALS[1]]) == first[1]).all()


def test_interpolated_vectors_are_near_the_merged_encoder_s_between_near_encoders(tmp_path: Path) -> None:
    start, tokenizer = tiny_encoder(tmp_path / "one")
    trained, _ = tiny_encoder(tmp_path / "one")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in trained.parameters():
            weight += 0.03 * weight.std(correction=0) * torch.randn(weight.shape, generator=generator)
    first, second = (Remembered(encoder, tokenizer, device="cpu") for encoder in (start, trained))
    for share in (0.0, 0.3, 1.0):
        near = interpolated(first, second, share)(ORIGINALS)
        own = encode(merged(start, trained, share), tokenizer, ORIGINALS)
        moved = np.linalg.norm(second(ORIGINALS) - first(ORIGINALS), axis=1)
        assert (np.linalg.norm(near - own, axis=1) <= 0.1 * moved).all()
