"""TSDAE: reconstruct a sentence from the vector of its remains after word deletion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch
from transformers import AutoConfig, ModernBertModel
from transformers.models.modernbert.modeling_modernbert import ModernBertEncoderLayer

from benchmarks.speed.stepping import batches, plain_step, product_step, sentence_transformer, training
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.language_modeling.config import TSDAEConfig
from bsl.models.objectives.language_modeling.masked_lm import embeddings_of, vocabulary_head
from bsl.models.views.config import DeletedView
from bsl.models.views.cropping import delete_words

PEER = "sentence-transformers DenoisingAutoEncoderLoss; padded torch where transformers has no decoder"


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return our step and the peer's; words are deleted before timing."""
    texts = pairs["text_1"].to_list()
    damaged = pl.DataFrame({"text_1": delete_words(texts, range(len(texts)), DeletedView()), "text_2": texts})
    encoder = EncoderConfig(model=str(encoder_folder), pooling="cls", max_length=64)
    has_decoder = AutoConfig.from_pretrained(encoder_folder).model_type == "bert"
    peer = (published if has_decoder else padded)(encoder, damaged)
    return product_step(encoder, damaged, training(TSDAEConfig())), peer


def published(encoder: EncoderConfig, damaged: pl.DataFrame) -> Callable[[], float]:
    """Return a step of sentence-transformers' loss."""
    from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss

    model = sentence_transformer(encoder)
    # The loss loads the decoder from the encoder's original folder.
    assert model.transformers_model is not None
    model.transformers_model.config._name_or_path = encoder.model
    loss, some = DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True), batches(damaged, training(TSDAEConfig()))

    def value() -> torch.Tensor:
        batch = next(some)
        result: torch.Tensor = loss([model.preprocess(batch[name].to_list()) for name in ("text_1", "text_2")], None)
        return result

    return plain_step([*dict.fromkeys(loss.parameters())], value)


def padded(encoder: EncoderConfig, damaged: pl.DataFrame) -> Callable[[], float]:
    """Return a step with ModernBERT's layers as causal decoder on padded rows, full cross-attention, and all logits."""
    online = SentenceEncoder.load(Path(encoder.model), encoder)
    backbone, width = online.network.backbone.train(), online.width
    assert isinstance(backbone, ModernBertModel)
    layers = [layer for layer in backbone.layers if isinstance(layer, ModernBertEncoderLayer)]
    head = vocabulary_head(backbone)
    looks = torch.nn.ModuleList(
        torch.nn.MultiheadAttention(width, backbone.config.num_attention_heads, batch_first=True) for _ in layers
    )
    some = batches(damaged, training(TSDAEConfig()))

    def states(ids: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        x = backbone.embeddings(input_ids=ids)
        rotation = backbone.rotary_emb(x, torch.arange(ids.shape[1])[None], "full_attention")
        future = torch.full((ids.shape[1],) * 2, -torch.inf).triu(1)[None, None]
        for layer, look in zip(layers, looks, strict=True):
            x = x + layer.attn(layer.attn_norm(x), position_embeddings=rotation, attention_mask=future)[0]
            x = x + look(x, vectors[:, None], vectors[:, None], need_weights=False)[0]
            x = x + layer.mlp(layer.mlp_norm(x))
        result: torch.Tensor = backbone.final_norm(x)
        return result

    def value() -> torch.Tensor:
        batch = next(some)
        left, whole = (
            online.tokenizer(batch[name].to_list(), truncation=True, max_length=64, padding=True, return_tensors="pt")
            for name in ("text_1", "text_2")
        )
        vectors = online.network(left["input_ids"], left["attention_mask"])
        scores = head(states(whole["input_ids"][:, :-1], vectors)) @ embeddings_of(backbone).T + head.bias
        labels = whole["input_ids"][:, 1:]
        return torch.nn.functional.cross_entropy(scores.mT, labels, ignore_index=online.tokenizer.pad_token_id)

    return plain_step([*backbone.parameters(), *head.parameters(), *looks.parameters()], value)
