"""Forms of an encoder are compared on the user's labels, and a loss is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bsl.tasks.evaluation.kinds import UnknownSuiteError
from bsl.tasks.evaluation.python_api import embedded_by, evaluate
from bsl.tasks.serving.form_scores import form_rows, form_sets, losses
from bsl.tasks.stage.run_context import RunContext
from tests.classified import TOPICS, texts_of

if TYPE_CHECKING:
    from pathlib import Path


def vectors_of(noise: float):
    """Return an encoder of the texts' topics, which noise hides."""

    def encode(texts: list[str]) -> np.ndarray:
        topics = [next(n for n, text in enumerate(TOPICS.values()) if text[:3] == given[:3]) for given in texts]
        generator = np.random.default_rng(len(texts))
        return np.eye(3)[topics] + noise * generator.normal(size=(len(texts), 3))

    return encode


def test_form_that_loses_on_labels_is_said_and_scores_are_those_of_evaluate(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    texts_of(0, 120).write_csv(path)
    name, site = f"labels:{path}#label=queue", RunContext(device="cpu", threads=1)
    found = form_sets(site, [name])
    noise = {"fp32": 0.0, "same": 0.0, "static table": 2.0}
    forms = {form: embedded_by(vectors_of(one), found.embedded(), {}) for form, one in noise.items()}
    rows = form_rows(forms, found)
    metrics = {row["metric"] for row in rows}
    assert [(row["form"], row["verdict"]) for row in rows] == [("same", "same"), ("static table", "loses")] * len(
        metrics
    )
    scores = evaluate(vectors_of(2.0), [name], site).scores
    for row in rows[1::2]:
        (expected,) = scores.filter(metric=row["metric"])["value"]
        assert row["after"] == f"{100 * expected:.2f}"
        assert float(row["difference"].split()[0]) < -10
    assert losses(rows).startswith("These forms lose: static table on labels:")
    assert losses(rows[::2]) == ""


def test_set_without_paired_draws_is_refused() -> None:
    with pytest.raises(UnknownSuiteError, match=r"--suite trec: .* bsl evaluate FOLDER --suite trec"):
        form_sets(RunContext(), ["trec"])
