"""The notes on texts before they are encoded."""

import polars as pl
import torch
from tokenizers import Tokenizer, models

from bsl.models.encoder.config import LONGEST, EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.static import StaticTable, static_tokenizer
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.embedding.encode import ResumableEncoding

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def test_texts_without_any_token_are_unknown_if_the_tokenizer_has_no_unknown_token(site, tmp_path):
    """Regression: all their vectors were zero, without a note."""
    tokenizer = static_tokenizer(Tokenizer(models.BPE({letter: row for row, letter in enumerate(LETTERS)}, [])))
    network = Encoder(StaticTable(torch.ones(len(LETTERS), 4)), EncoderConfig(model="own", max_length=LONGEST))
    SentenceEncoder(network.eval(), tokenizer).save(tmp_path / "letters")
    config = EncoderConfig(model=str(tmp_path / "letters"))
    texts = ["abc", "ЖЖЖ", "ЩЩЩ", "ЯЯЯ abc ЯЯ"]
    encoder = SentenceEncoder.load(config.model)
    assert encoder.are_unknown(encoder.tokenize([*texts, ""])).tolist() == [False, True, True, False, True]
    assert not encoder.encode(texts)[1:3].any()
    encoding = ResumableEncoding(site, resolve_model(config.model), config, "fp32")
    (note,) = encoding.notes([pl.DataFrame({"text": texts[:3]})])
    assert note.startswith("2 of the first 3 texts consist mostly of words that the encoder's tokenizer does not know")
