"""Recipes that learn from the text of one SentEval task and are scored on it: a run a task, as row IS-BERT-task was.

Each is a task of `TASKS` under a line of `_SYSTEMS`, from which its function is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flows.recipes.isbert import isbert
from flows.recipes.paper import nli
from flows.recipes.shared import as_printed
from storage.datasets.registry import DATASETS
from storage.sources.sources import SourceSpec
from tasks.corpus.config import IngestConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.config import PipelineConfig

TASKS: Final = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
"""Those of IS-BERT's Table 3 and BSL's Table 2."""
ROW: Final = "IS-BERT-task"


@dataclass(frozen=True)
class OnTasks:
    """A system that learns from task text.

    Attributes:
        name: what recipes begin with.
        settings: the recipe whose settings it has.
        title: what reports call it.
        source: where the setting is printed.
        beside: row to stand beside next to the setting's own.
    """

    name: str
    settings: Callable[[], PipelineConfig]
    title: str
    source: str
    beside: str

    def recipe(self, task: str) -> Callable[[], PipelineConfig]:
        """The function that `bsl recipes` lists; of a task with splits the one to learn from is read."""
        name, heading = f"{self.name}-{task}", DATASETS[task].heading

        def make() -> PipelineConfig:
            return self.settings().model_copy(
                update={
                    "title": f"{name}: {self.title} on the sentences of {heading}",
                    "ingest": IngestConfig(sources=(SourceSpec(dataset=task),)),
                    "evaluation": as_printed(task),
                    "published": (ROW, self.beside),
                }
            )

        make.__name__ = make.__qualname__ = name.replace("-", "_")
        make.__doc__ = f"{self.source}: as `{self.settings.__name__}`, on the sentences of {heading} without labels."
        return make


_SYSTEMS: Final = (
    OnTasks("isbert", isbert, "IS-BERT", "IS-BERT-task (IS-BERT, Table 3)", "BERT avg."),
    OnTasks("bsl", nli, "BSL", "BSL in the setting of IS-BERT-task (Table 2)", "BSL-BERT"),
)
TRANSFER: Final = tuple(system.recipe(task) for system in _SYSTEMS for task in TASKS)
