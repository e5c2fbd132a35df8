"""What `bsl` can do, a line for each verb. A verb's module is imported when it is called, none to list them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True)
class Verb:
    """A verb.

    Attributes:
        name: what a person types, and the module of flows/cli that defines its options as `define_<name>(parser)`.
        help: one line.
    """

    name: str
    help: str

    def define(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the verb's options, and `call`, which does its work."""
        getattr(import_module(f"flows.cli.{self.name}"), f"define_{self.name}")(parser)


VERBS: Final = (
    Verb("run", "run a recipe from raw sentences to its report"),
    Verb("adapt", "adapt an encoder to your text; it is handed out where it is proved better"),
    Verb("evaluate", "score any encoder on the papers' sets; compare several on the same pairs"),
    Verb("compare", "hold finished runs against each other, on the same pairs"),
    Verb("reproduce", "run the recipe behind a published row, and hold it against the row"),
    Verb("sweep", "run a grid of configurations, each with several seeds, to one table"),
    Verb("field", "try every method on your text, and say which to use"),
    Verb("embed", "write the vectors of a file's sentences"),
    Verb("search", "find the sentences of a corpus that are most like a query"),
    Verb("pairs", "find the sentences of a corpus that are most like each other"),
    Verb("recipes", "list the recipes, or print one's complete configuration"),
    Verb("artifacts", "list, show, verify, collect or export what runs have made"),
    Verb("export", "write an encoder's small and fast forms: ONNX, int8, fewer dimensions, a static table"),
    Verb("assets", "list, verify or rebuild the models and texts in the package"),
    Verb("mirror", "fill a folder that stands in for the Hub, to be used as BSL_DATA_MIRROR"),
    Verb("pins", "list the Hub's commits that recipes read; compare them with the Hub"),
    Verb("bench", "check and measure a GPU or a processor: parity, rates, share of its limits"),
    Verb("doctor", "check devices, disk, store, server, models and data of a recipe"),
    Verb("completion", "print what makes your shell complete verbs and options"),
    Verb("ui", "serve the Prefect UI over the runs of this folder"),
)
