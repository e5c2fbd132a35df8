"""The exported folder is a sentence-transformers model with the same embeddings."""

import hashlib

import numpy as np
import pytest

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.pooling import POOLINGS
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.storage.assets.embedded import embedded_path
from tests.exports import exported
from tests.tiny_encoder import BACK_DE, ORIGINALS, write_tiny

TEXTS = [*ORIGINALS, *BACK_DE, "a man is playing " * 20, "x"]


@pytest.mark.parametrize(
    ("architecture", "pooling", "normalize"),
    [
        (architecture, pooling, (place + number) % 2 == 1)  # each pooling once with and once without
        for number, architecture in enumerate(("bert", "modernbert"))
        for place, pooling in enumerate(name for name in POOLINGS if name != "cls-pooler")
    ]
    + [("bert", "cls-pooler", normalize) for normalize in (False, True)],  # ModernBERT has no pooler
)
def test_export_round_trips_and_matches_sentence_transformers(tmp_path, architecture, pooling, normalize):
    config = EncoderConfig(model="tiny", pooling=pooling, normalize=normalize, max_length=24)
    encoder = SentenceEncoder.load(write_tiny(tmp_path / "in", architecture), config)
    again = exported(encoder, tmp_path / "out", TEXTS).config
    if pooling != "cls-pooler":  # then its pooler is a module
        assert again == encoder.config.model_copy(update={"model": again.model})


def test_first_last_pooling_of_single_layer_encoder_round_trips(shallow, tmp_path):
    whole = SentenceEncoder.load(shallow, EncoderConfig(model="shallow", pooling="first-last"))
    whole.save(tmp_path)
    again = SentenceEncoder.load(tmp_path, EncoderConfig(model="again", pooling="first-last"))
    assert np.abs(again.encode(TEXTS) - whole.encode(TEXTS)).max() <= 1e-6


# Digests of the files whose format is ours, written with mean pooling by the code before heads existed; transformers
# writes the other files.
PLAIN = {
    "1_Pooling/config.json": "492f7efb669afe9dcd01490c7d8b9847d057b43f237f9f1456f703d10cf5b61b",
    "config_sentence_transformers.json": "44f46cbd458b4946b7c3abc166e83d58cf2e7474faa0fb1ad2e44fc811e9f416",
    "model.safetensors": "88e786c2e65680fcfb019b14c11db734967467739127c6fc916f06f1e3e3a34a",
    "modules.json": "0580fad756940809b1bc064ce1e7c1275c8b0dd80869562fe0abeb6f7059cb97",
    "sentence_bert_config.json": "2348ecda640444f105470a8b0901631dd21c2987588f4d622b8a70765f2bba49",
}


def test_export_without_heads_matches_the_recorded_digests(tmp_path):
    config = EncoderConfig(model="embedded:bert-mini")
    SentenceEncoder.load(embedded_path("bert-mini"), config).save(tmp_path)
    files = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*") if path.is_file()}
    assert set(files) - set(PLAIN) == {"config.json", "tokenizer.json", "tokenizer_config.json"}
    assert {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in PLAIN} == PLAIN
