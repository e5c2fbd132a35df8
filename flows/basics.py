"""The fields of a recipe that people change most, as the UI's run form shows them: with the recipe's own values.

A deployment of prefect.yaml carries its recipe's values, so that the form opens with them, and says whose they are. A
value that is that recipe's own changes nothing: who picks another recipe in the form gets that recipe, not a mixture of
two. Prefect's runtime cannot say whose they are: its `deployment.parameters` are the run's own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from flows.config import merged, nested
from flows.recipes import RecipeName, recipe
from storage.readers.table import is_readable


class Basics(BaseModel):
    """What people change most. An empty field is as the recipe has it; `overrides` has all the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    corpus: tuple[str, ...] | None = Field(
        None, title="Corpus", description="Data sets (`snli`, `embedded:nli-sample`), Hub ids, or paths of files."
    )
    sentences: int | None = Field(
        None, ge=1, title="Most sentences", description="Of the corpus (`ingest.corpus.limit`)."
    )
    encoder: str | None = Field(
        None, min_length=1, title="Encoder", description="Where training starts: Hub id, folder, `embedded:` name, "
        "`checkpoint/<key>` (`encoder.model`).",
    )  # fmt: skip
    learning_rate: float | None = Field(
        None, gt=0, le=1, title="Learning rate", description="At its peak (`training.lr`)."
    )
    steps: int | None = Field(
        None, ge=1, title="Most steps", description="Ends training before its epochs do (`training.max_steps`)."
    )
    epochs: int | None = Field(None, ge=1, title="Epochs", description="Passes over the pairs (`training.epochs`).")
    batch_size: int | None = Field(
        None, ge=2, title="Batch size", description="Pairs a step, over all processes (`training.batch_size`)."
    )
    seed: int | None = Field(
        None, ge=0, title="Seed", description="Of initial weights, order, dropout (`training.seed`)."
    )
    values_of: RecipeName | None = Field(
        None, title="Values of", description="Leave it: the recipe that these values are of, so that those you left "
        "as they were do not go into another recipe.",
    )  # fmt: skip

    @classmethod
    def of(cls, name: str) -> Basics:
        """The values of a recipe.

        Raises:
            UnknownRecipeError: no recipe has that name.
        """
        config = recipe(name)
        training = config.training
        return cls(
            corpus=tuple(source.path or source.dataset or "" for source in config.ingest.sources),
            sentences=config.ingest.corpus.limit,
            encoder=config.encoder.model,
            learning_rate=training.lr if training else None,
            steps=training.max_steps if training else None,
            epochs=training.epochs if training else None,
            batch_size=training.batch_size if training else None,
            seed=training.seed if training else None,
            values_of=name,
        )

    def changes(self, chosen: str) -> dict[str, Any]:
        """What differs from the recipe whose values the form opened with, as overrides.

        Args:
            chosen: the recipe that runs, whose values they are where nothing else is said.
        """
        own = Basics.of(self.values_of or chosen)
        given = self.model_dump(exclude_none=True, exclude={"values_of"})
        changed = {name: value for name, value in given.items() if value != getattr(own, name)}
        made: dict[str, Any] = {}
        for name, value in changed.items():
            wanted = [_source(source) for source in value] if name == "corpus" else value
            made = merged(made, nested(_PLACES[name], wanted))
        return made


_PLACES: Final = {
    "corpus": "ingest.sources",
    "sentences": "ingest.corpus.limit",
    "encoder": "encoder.model",
    "learning_rate": "training.lr",
    "steps": "training.max_steps",
    "epochs": "training.epochs",
    "batch_size": "training.batch_size",
    "seed": "training.seed",
}
_PATH: Final = ("/", "./", "../", "~")


def _source(name: str) -> dict[str, str]:
    """Files by their path; whatever else is a data set."""
    is_path = name.startswith(_PATH) or "://" in name or "*" in name or is_readable(name)
    return {"path" if is_path else "dataset": name}


def write_forms(path: Path) -> None:
    """Give each recipe's deployment in prefect.yaml the recipe's values, which its run form then opens with."""
    text = path.read_text(encoding="utf-8")
    path.write_text(_DEPLOYED.sub(_with_values, text), encoding="utf-8")


_DEPLOYED: Final = re.compile(
    r"^    parameters: *(?:\{recipe_name: (?P<short>[\w-]+)\}"
    r"|\n      recipe_name: (?P<long>[\w-]+)\n      basics: .*)$",
    re.MULTILINE,
)


def _with_values(found: re.Match[str]) -> str:
    name = found["short"] or found["long"]
    values = Basics.of(name).model_dump(mode="json", exclude_none=True)
    inner = ", ".join(f"{field}: {_as_yaml(value)}" for field, value in values.items())
    return f"    parameters:\n      recipe_name: {name}\n      basics: {{{inner}}}"


def _as_yaml(value: object) -> str:
    """As JSON, but for a number such as 2e-05, which YAML 1.1 takes for text."""
    written = json.dumps(value)
    return written.replace("e", ".0e") if isinstance(value, float) and "." not in written else written


if __name__ == "__main__":
    write_forms(Path("prefect.yaml"))
