"""Pre-train the small embedded models on licensed text.

Each model is an artifact of kind `asset`: a folder `model/` that transformers can load, and figures of its training.
Runs resume from the store's scratch folder.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl

from assets.training.config import EncoderRecipe, TranslatorRecipe
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.errors import SourceError
from bsl.storage.sources.sources import ResolvedSource, SourceSpec, resolve_source
from bsl.tasks.stage.cached import StageContext, StageInputs, stage
from bsl.tasks.stage.device import cores, device_of
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from pydantic import JsonValue
    from transformers import MarianTokenizer

    from assets.training.loop import RunState
    from assets.training.translation import EncodedPairs
    from bsl.tasks.stage.run_context import RunContext

MODEL = "model"
VOCABULARY = "vocabulary"
NEAR = 0.3
"""Share of each language's pairs that counts as near to captions."""


def locate_collections(site: RunContext, names: tuple[str, ...]) -> tuple[ResolvedSource, ...]:
    """Find and fingerprint collections `<name>/<split>` of the mirror.

    Raises:
        SourceError: No mirror is set, or a collection is missing in it.
    """
    if site.mirror is None:
        raise SourceError(
            "no mirror is set (expected one with the licensed collections of the assets). Set BSL_DATA_MIRROR."
        )
    root = site.mirror.rstrip("/")
    return tuple(resolve_source(SourceSpec(path=f"{root}/{name}.parquet", name=name)) for name in names)


def read_collections(sources: tuple[ResolvedSource, ...]) -> dict[str, pl.DataFrame]:
    """Read the collections; return name → table, with each collection's columns."""
    return {source.name: pl.read_parquet(source.files[0]) for source in sources}


@stage(ref=ArtifactRef, kind="asset", version=2, uses_torch=True)
def pretrain_encoder(
    context: StageContext,
    sources: tuple[ResolvedSource, ...],
    kept_out: tuple[ResolvedSource, ...],
    recipe: EncoderRecipe,
) -> None:
    """Train a WordPiece vocabulary and a masked LM.

    Args:
        context: the stage's context.
        sources: Training collections, and the evaluation sets, whose sentences are excluded.
        kept_out: Held-out pairs, whose sentences are excluded too from the training of a multilingual model.
        recipe: Languages, shape, budget.
    """
    from torch import nn

    from assets.training.corpora import english_sentences, multilingual_sentences
    from assets.training.loop import export_half, pretrain
    from assets.training.masked_lm import MaskedSentences, build_masked_lm, evaluate_masked_lm
    from assets.training.vocabulary import encode_wordpieces, train_wordpiece

    seed = recipe.learning.seed
    frames = read_collections(sources)
    if recipe.multilingual:
        held_out = (pl.read_parquet(source.files[0]) for source in kept_out)
        excluded = [text for frame in held_out for side in frame for text in side]
        texts = multilingual_sentences(frames, excluded, seed)
    else:
        texts = english_sentences(frames, seed)
    tokenizer = train_wordpiece(texts, recipe.vocabulary, accents=recipe.multilingual)
    held, train = (
        MaskedSentences(encode_wordpieces(tokenizer, part, recipe.model.max_tokens), tokenizer, recipe.model, seed)
        for part in (texts[: recipe.held_out], texts[recipe.held_out :])
    )
    model = build_masked_lm(recipe.model, tokenizer, seed)
    nn.Module.to(model, device_of(context.site))
    progress = progress_of("masked LM")
    state = pretrain(model, train, recipe.learning, progress, context.store.scratch(context.ref))
    export_half(model, tokenizer, context.draft.folder / MODEL)
    figures = {f"held_out_{name}": value for name, value in evaluate_masked_lm(model, held, seed).items()}
    context.draft.note({**_training(state), **figures, "sentences": len(train.sentences)})


@stage(ref=ArtifactRef, kind="parallel", version=1)
def split_parallel(context: StageContext, sources: tuple[ResolvedSource, ...], recipe: TranslatorRecipe) -> None:
    """Hold out sentence pairs jointly over all languages, and train the vocabulary that both translators share."""
    from assets.training.corpora import LANGUAGES, NLI, closeness, nearest, split_pairs
    from assets.training.vocabulary import train_vocabulary, vocabulary_texts

    frames = read_collections(sources)
    pairs = {code: frames[f"tatoeba_en_{code}/all"].select("en", pl.col(code).alias("other")) for code in LANGUAGES}
    captions = pl.concat([frames[NLI[0]]["premise"], frames[NLI[0]]["hypothesis"]])
    train, held_out = split_pairs(pairs, recipe.held_out, recipe.learning.seed)
    for part, by_language in (("train", train), ("held", held_out)):
        for code, frame in by_language.items():
            scores = closeness(frame["en"].to_list(), captions.unique(maintain_order=True), frame["en"])
            marked = frame.with_columns(near=pl.Series(nearest(scores, NEAR)))
            marked.write_parquet(context.draft.folder / f"{part}-{code}.parquet")
    texts = vocabulary_texts(train, captions, recipe.learning.seed)
    train_vocabulary(texts, recipe.vocabulary, list(LANGUAGES.values()), context.draft.folder / VOCABULARY)
    context.draft.note({f"pairs_{code}": len(frame) for code, frame in train.items()})


@stage(ref=ArtifactRef, kind="asset", version=2, uses_torch=True)
def pretrain_translator(
    context: StageContext,
    parallel: ArtifactRef,
    start: ArtifactRef | None,
    back: ArtifactRef | None,
    recipe: TranslatorRecipe,
) -> None:
    """Train a translator, from scratch or from another with the same vocabulary."""
    from torch import nn
    from transformers import MarianMTModel, MarianTokenizer

    from assets.training.loop import export_half, pretrain
    from assets.training.translation import TranslationPairs, build_translator
    from assets.training.vocabulary import without_targets

    folder = context.store.fetch(parallel)
    tokenizer = MarianTokenizer.from_pretrained(folder / VOCABULARY)
    model = build_translator(recipe.model, tokenizer, recipe.learning.seed)
    if start is not None:
        trained = MarianMTModel.from_pretrained(context.store.fetch(start) / MODEL)
        model.load_state_dict(trained.state_dict())
    examples = _examples(folder, tokenizer, recipe)
    if back is not None:
        examples += _back_translated(context.store.fetch(back), tokenizer, recipe)
    curriculum = TranslationPairs(examples, tokenizer, recipe.model, recipe.learning.seed)
    nn.Module.to(model, device_of(context.site))
    progress = progress_of("translator")
    state = pretrain(model, curriculum, recipe.learning, progress, context.store.scratch(context.ref))
    export_half(model, tokenizer, context.draft.folder / MODEL)
    if recipe.into_english:
        without_targets(context.draft.folder / MODEL)
    context.draft.note(_training(state))


class BackTranslation(StageInputs):
    """Settings of the back-translation: English sentences and target languages."""

    languages: tuple[str, ...]
    """ISO 639-1 codes."""
    captions: int
    """Maximum number of SNLI sentences, for each language."""
    everyday: int
    """Maximum number of Tatoeba sentences, for each language."""


@stage(ref=ArtifactRef, kind="back_translated", version=2, uses_torch=True)
def back_translate(
    context: StageContext,
    translator: ArtifactRef,
    sources: tuple[ResolvedSource, ...],
    parallel: ArtifactRef,
    sample: ResolvedSource,
    chosen: BackTranslation,
) -> None:
    """Translate English by an embedded model, as training data for the translator back into English (round trips).

    Args:
        context: the stage's context.
        translator: Translator from English into the languages.
        sources: Collections with SNLI, the sentence pairs and the evaluation sets.
        parallel: Split whose held-out pairs are excluded.
        sample: NLI sample of the recipes, also excluded.
        chosen: Languages, and numbers of sentences.
    """
    from assets.training.corpora import LANGUAGES, round_trip_sentences
    from bsl.models.translation.config import Resources, TranslatorConfig
    from bsl.models.translation.loading import load_translator

    folder = context.store.fetch(translator) / MODEL
    held_out = pl.concat([pl.read_parquet(path)["en"] for path in sorted(context.store.fetch(parallel).glob("held-*"))])
    pairs = pl.read_parquet(sample.files[0])
    excluded = [*held_out, *pairs["premise"], *pairs["hypothesis"]]
    english = round_trip_sentences(read_collections(sources), excluded, chosen.captions, chosen.everyday)
    for code in chosen.languages:
        config = TranslatorConfig(
            model=str(translator), source_lang="en", target_lang=code, target_token=f">>{LANGUAGES[code]}<<"
        )
        with TemporaryDirectory() as scratch:
            resources = Resources(device_of(context.site), context.site.threads or cores())
            engine = load_translator(folder, config, resources, Path(scratch) / "converted")
        texts = [
            translation.text for translation in engine.translate(english, progress_of(f"back-translation, {code}"))
        ]
        frame = pl.DataFrame({"source": texts, "target": english}).filter(pl.col("source").str.strip_chars() != "")
        frame.write_parquet(context.draft.folder / f"{code}.parquet")


def _examples(folder: Path, tokenizer: MarianTokenizer, recipe: TranslatorRecipe) -> list[EncodedPairs]:
    from assets.training.corpora import LANGUAGES
    from assets.training.translation import EncodedPairs, comparable
    from assets.training.vocabulary import encode_pieces

    found: list[EncodedPairs] = []
    for code, share in recipe.shares.items():
        frame = pl.read_parquet(folder / f"train-{code}.parquet")
        prefix = tokenizer.get_vocab()[f">>{LANGUAGES[code]}<<"]
        for part, drawn in ((frame.filter("near"), share * recipe.near), (frame.filter(~pl.col("near")), share)):
            english, other = comparable(encode_pieces(tokenizer, part["en"]), encode_pieces(tokenizer, part["other"]))
            if recipe.into_english:
                found.append(EncodedPairs(other, english, None, drawn))
            else:
                found.append(EncodedPairs(english, other, prefix, drawn))
    return found


def _back_translated(folder: Path, tokenizer: MarianTokenizer, recipe: TranslatorRecipe) -> list[EncodedPairs]:
    from assets.training.translation import EncodedPairs
    from assets.training.vocabulary import encode_pieces

    frames = [pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))]
    encoded = [
        (encode_pieces(tokenizer, frame["source"]), encode_pieces(tokenizer, frame["target"])) for frame in frames
    ]
    return [EncodedPairs(source, target, None, recipe.back_translated) for source, target in encoded]


def _training(state: RunState) -> dict[str, JsonValue]:
    return {
        "steps": state.step,
        "tokens": state.tokens,
        "minutes": round(state.elapsed_s / 60, 2),
        "losses": [[step, loss] for step, loss in state.losses],
    }
