"""Environment of a user of the recipes: a Hub with all named repositories, files that are on no Hub, small sizes.

All sizes are small, all steps are the recipe's. Translators decode with the settings of the package's translators,
because the stand-in serves the package's weights.
"""

import itertools
import json
import zipfile
from collections.abc import Mapping
from typing import Any, Final

from bsl.flows.hub import is_hub_id
from bsl.flows.recipes import RECIPES, recipe
from bsl.models.translation.config import MINI
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.readers.benchmarks.afs import TOPICS
from tests.hub.repositories import publish, publish_nli, publish_sts, sentences
from tests.hub.senteval import publish_senteval
from tests.tiny_wordnet import write_tiny_wordnet

SHORT: Final[Mapping[str, tuple[str, ...]]] = {
    "sts": ("sts16",),
    "senteval": ("trec",),
    "sts17-bsl": ("sts17-en-de",),
}
"""Suite → the set that represents it."""
_WITH_SENTEVAL: Final = ("nli", "bsl-task")  # scoring takes a minute each
NEW: Final = 80  # sentences of each own file


def needs_the_hub():
    names = []
    for name, make in RECIPES.items():
        config = make()
        outside = [model for model, _ in config.models()] + [str(spec.dataset) for spec in config.ingest.sources]
        if not all(part.startswith(EMBEDDED) for part in outside):
            names.append(name)
    return tuple(names)


def publish_all(hub, names):
    models = [model for name in names for model in recipe(name).models()]
    publish(hub, [model for model in models if is_hub_id(model[0])])
    publish_nli(hub)
    publish_sts(hub, [name for name, declared in DATASETS.items() if declared.hub_id and declared.score_range])
    publish_senteval(hub)


def write_own_files(folder):
    """Write files that are on no Hub: text, books, vectors, AFS, authors' views, WordNet; return the mirror of sets."""
    texts = sentences()
    for number, name in enumerate(("sentences.txt", "wiki1m_for_simcse.txt", "books/novel.txt")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(texts[number * NEW : (number + 1) * NEW]))
    words = sorted({word for text in texts for word in text.split()})[:500]
    numbers = [" ".join(f"{(row * step % 97 - 48) / 50}" for step in range(1, 33)) for row in range(len(words))]
    vectors = "\n".join(f"{word} {values}" for word, values in zip(words, numbers, strict=True))
    (folder / "glove.840B.300d.txt").write_text(vectors)
    (folder / "files" / "back_translated_nli").mkdir(parents=True)
    pairs = "".join(f"{text}\tSo to say: {text}\n" for text in texts[:NEW])
    with zipfile.ZipFile(folder / "files" / "back_translated_nli" / "back_translated_nli.txt.zip", "w") as packed:
        packed.writestr("back_translated_nli.txt", pairs)
    _write_afs(folder / "files" / "afs")
    write_tiny_wordnet(folder / "nltk" / "corpora" / "wordnet")
    return folder / "files"


def _write_afs(folder):
    quiet = [text.replace(",", "").replace('"', "") for text in sentences()[:50]]
    rows = [f"{1 + row % 5},,,,,,,,,{first},{second}" for row, (first, second) in enumerate(itertools.pairwise(quiet))]
    folder.mkdir(parents=True)
    for topic in TOPICS:
        (folder / f"ArgPairs_{topic}.csv").write_text("\n".join(["header", *rows]), encoding="latin-1")


def small(name):
    """Return changes that make a recipe's sizes small and leave its steps."""
    config = recipe(name)
    words = [word for word in config.evaluation.sets if word != "senteval" or name in _WITH_SENTEVAL]
    sets = [part for word in words for part in SHORT.get(word, (word,))]
    probe = {"protocols": ["fast"], "folds": 2, "tolerance": 0.5}
    changes: dict[str, Any] = {
        "ingest": {"corpus": {"limit": 96}},
        "augment": {"translations": _searched_as_the_package_s(config)},
        "evaluation": {"sets": sets, "bootstrap": {"resamples": 100}, "probe": probe},
    }
    if config.training is not None:
        earlier = [phase.model_dump() for phase in config.earlier]
        for phase in earlier:
            phase["training"] |= _few_steps(phase["training"])
        changes |= {"earlier": earlier, "training": _few_steps(config.training.model_dump())}
    if config.transform is not None:
        changes["transform"] = {"dimensions": 16} if config.transform.name == "whitening" else {"max_steps": 2}
    return changes


def _few_steps(training):
    objective = training["objective"]
    queue = {"objective": {**objective, "queue": 16}} if objective.get("queue") else {}
    return {"batch_size": 8, "max_steps": 2, "eval_every": 2, "collapse": None, **queue}


def _searched_as_the_package_s(config):
    views = [view.model_dump() for view in config.augment.translations]
    for hop in [hop for view in views for hop in view["hops"]]:
        mini = MINI[f"{hop['source_lang']}-{hop['target_lang']}"]
        hop |= {field: getattr(mini, field) for field in ("target_token", "beam", "no_repeat_ngram")}
    return views


def as_settings(changes):
    return [part for field, value in changes.items() for part in ("--set", f"{field}={json.dumps(value)}")]
