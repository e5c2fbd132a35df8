"""`bsl-assets` builds all assets at the smallest size: a mirror of a few hundred sentences, models of one layer."""

import random
from pathlib import Path

import polars as pl
import pytest
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, MarianMTModel

from assets.flow import AssetsConfig, assets
from assets.training.config import (
    EncoderRecipe,
    LearningConfig,
    LessonsRecipe,
    StudentRecipe,
    TableRecipe,
    TranslatorRecipe,
)
from assets.training.corpora import ENGLISH, EVALUATION, LANGUAGES
from assets.training.masked_lm import EncoderShape
from assets.training.translation import TranslationModelConfig
from assets.verify import BACK, ENCODER, MODELS, STUDENT, TABLE, VERIFIED
from bsl.models.encoder.config import EncoderConfig
from bsl.storage.assets.catalog import embedded_manifest
from bsl.storage.assets.embedded import embedded_names, embedded_path
from bsl.storage.errors import SourceError
from bsl.tasks.stage.run_context import RunContext

SUBJECTS = ("a dog", "the man", "my sister", "an old woman", "the teacher", "a child", "our neighbour", "the cat")
ACTIONS = ("reads a book", "runs in the park", "sings a song", "eats some bread", "looks at the sea", "sleeps at home")
PLACES = ("today", "in the evening", "with a friend", "near the river", "again")
SENTENCES = [f"{s} {a} {p}." for s in SUBJECTS for a in ACTIONS for p in PLACES]
LEARNING = LearningConfig(steps=3, warmup_steps=1, precision="fp32")
TRANSLATOR = TranslatorRecipe(
    vocabulary=88,
    held_out=5,
    model=TranslationModelConfig(encoder_layers=1, decoder_layers=1, width=16, heads=2, feed_forward=16),
    learning=LEARNING,
)
TAUGHT = StudentRecipe().training.model_copy(update={"batch_size": 8, "max_steps": 3, "precision": "fp32"})
SMALL = AssetsConfig(
    encoder=EncoderRecipe(
        vocabulary=120,
        held_out=20,
        model=EncoderShape(layers=1, width=16, heads=2, feed_forward=16),
        learning=LEARNING,
    ),
    multilingual=EncoderRecipe(
        multilingual=True,
        vocabulary=200,
        held_out=20,
        model=EncoderShape(layers=1, width=16, heads=2, feed_forward=16),
        learning=LEARNING,
    ),
    forward=TRANSLATOR,
    back=TRANSLATOR.model_copy(update={"shares": {"de": 1.0, "fr": 1.0}, "into_english": True}),
    round_trip=TRANSLATOR.model_copy(update={"shares": {"de": 1.0}, "into_english": True, "back_translated": 1.0}),
    teacher=EncoderConfig(model="embedded:bert-mini"),
    lessons=LessonsRecipe(sentences=40),
    student=StudentRecipe(training=TAUGHT),
    table=TableRecipe(vocabulary=120, dimensions=8, training=TAUGHT),
    captions=12,
    everyday=6,
    measured=5,
)


def reversed_words(text: str) -> str:
    return " ".join(word[::-1] for word in text.split())


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    shuffled = random.Random(0).sample(SENTENCES, len(SENTENCES))
    frames = {
        "ni_text/all": pl.DataFrame({"text": [f"Fact: {text.capitalize()}" for text in shuffled[:40]]}),
        "novels/docs": pl.DataFrame({"text": ["CHAPTER I\n\n" + " ".join(t.capitalize() for t in shuffled[40:80])]}),
        "wikitext2_validtest/all": pl.DataFrame({"text": [f" {text} " for text in shuffled[80:99]]}),
    }
    for code in LANGUAGES:
        frames[f"tatoeba_en_{code}/all"] = pl.DataFrame(
            {"en": shuffled, code: [f"{code} {reversed_words(text)}" for text in shuffled]}
        )
    for name in EVALUATION:
        frames[name] = pl.DataFrame({"sentence1": shuffled[:3], "sentence2": shuffled[3:6]})
    for name in set(ENGLISH) - set(frames):
        frames[name] = pl.DataFrame({"premise": shuffled, "hypothesis": shuffled[::-1]})
    for name, frame in frames.items():
        path = tmp_path / "mirror" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path)
    return tmp_path / "mirror"


def test_assets_flow_builds_verified_loadable_models(mirror, tmp_path):
    site = RunContext(store=str(tmp_path / "store"), mirror=str(mirror), device="cpu", threads=1)
    keys = assets(SMALL, site, tmp_path / "assets")
    assert embedded_names(tmp_path / "assets") == sorted(MODELS) == sorted(keys)
    for name in keys:
        manifest = embedded_manifest(name, tmp_path / "assets")
        assert manifest.figures[VERIFIED]
        assert manifest.training["artifact"] == keys[name]
    assert AutoModel.from_pretrained(embedded_path(ENCODER, tmp_path / "assets")).config.hidden_size == 16
    for name, width in ((STUDENT, 256), (TABLE, 8)):  # the student is as wide as its teacher; its own width is 16
        taught = SentenceTransformer(str(embedded_path(name, tmp_path / "assets")), device="cpu")
        assert taught.encode(SENTENCES[:2]).shape == (2, width)
    assert MarianMTModel.from_pretrained(embedded_path(BACK, tmp_path / "assets")).config.vocab_size == 88


def test_assets_without_a_mirror_raise_source_error(tmp_path):
    with pytest.raises(SourceError, match="Set BSL_DATA_MIRROR"):
        assets(SMALL, RunContext(store=str(tmp_path / "store"), device="cpu"), tmp_path / "assets")
