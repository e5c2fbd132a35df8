"""Cards of an encoder's small and fast forms: one of all of them, and one beside each that has a folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.encoder.int8 import GRAPHS
from storage.artifacts.refs import CheckpointRef
from tasks.rendering.escaping import plain
from tasks.rendering.markdown import markdown_table
from tasks.reporting.card import LICENCES, material_rows
from tasks.reporting.card_header import Header, front_matter
from tasks.reporting.export import newest_card
from tasks.reporting.model_card import hub_id, model_material

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from models.encoder.int8 import Target
    from storage.sources.model_sources import ResolvedModel
    from tasks.stage.run_context import RunContext

README: Final = "README.md"
TITLE: Final = "Forms of the encoder, measured on this machine"
_EXPLAINED: Final = """\
Weights in 10⁶ bytes; sentences of STS-B's test set a second, from text to vector, in the fastest of three passes, and
from the slowest to it; Spearman × 100 of their cosines with 95 % interval; the difference from the first form on the
same draws of pairs.

```python
from sentence_transformers import SentenceTransformer

SentenceTransformer("this-folder")  # or "this-folder/dims-128", "this-folder/static"
SentenceTransformer("this-folder", backend="onnx", model_kwargs={"file_name": "onnx/GRAPH"})
```

`bsl evaluate` and `encoder.model` take the same folders, and a graph by its path. A graph's inputs are `input_ids` and
`attention_mask`; its output `sentence_embedding` is pooled, `last_hidden_state` is not. `first` dimensions are the
encoder's own, `turned` ones those after a rotation that changes no cosine. In int8 a vector depends a little on which
others are in its batch."""
_TARGETS: Final[Mapping[Target, str]] = {
    "vnni": "The int8 graph is for processors with VNNI, and ARM: on others its sums saturate and its vectors drift.",
    "avx2": "The int8 graph runs on all processors: its weights have 7 bits, so that no sum saturates without VNNI.",
}


def card_of(site: RunContext, name: str, found: CheckpointRef | ResolvedModel, folder: Path) -> str:
    """What is known of the whole encoder: its report's card, that in its folder, or its name and licence."""
    card = newest_card(site.open_store(), found) if isinstance(found, CheckpointRef) else folder / README
    if card is not None and card.is_file():
        return card.read_text(encoding="utf-8")
    material = model_material("encoder", name)
    header = Header(name, hub_id(name), [], [], [material.licence], [])
    licences = f"{LICENCES}\n\n{markdown_table(material_rows([material]))}"
    return f"{front_matter(header)}\n\n# {plain(name)}\n\n{licences}\n"


def write_cards(folder: Path, rows: Sequence[dict[str, str]], card: str) -> None:
    """A card of all forms, and one beside each that has a folder of its own."""
    text = f"{card}\n## {TITLE}\n\n{_explained(rows)}\n\n{markdown_table(rows)}\n"
    (folder / README).write_text(text, encoding="utf-8")
    from tasks.serving.variants import form_card

    for row in rows:
        if row["place"] != "." and (folder / row["place"]).is_dir():
            (folder / row["place"] / README).write_text(form_card(card, row), encoding="utf-8")


def _explained(rows: Sequence[dict[str, str]]) -> str:
    """How each form is used, with the graph that was made and what it runs on."""
    places = {row["place"] for row in rows}
    target = next((target for target, name in GRAPHS.items() if f"onnx/{name}" in places), None)
    if target is None:
        return _EXPLAINED.replace("GRAPH", "model.onnx")
    return f"{_EXPLAINED.replace('GRAPH', GRAPHS[target])} {_TARGETS[target]}"
