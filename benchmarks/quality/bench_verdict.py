"""Compare the verdicts of `bsl adapt` with the change of encoders on labels that no run has read.

    python -m benchmarks.quality.bench_verdict FOLDER [--starts ENCODER…] [--seeds 2] [--labels 0.6] [--set …]

FOLDER, which verdict_texts.py writes, has one text per file, `NAME.parquet`: `text` and `label` (classes), or `text`,
`text_2` and `score` (pairs), with `document` or `title` where the text has them. The encoder is adapted to each text
without its labels; with `--labels`, to that share of its rows with labels, and only the other rows are scored. Then the
start and the trained encoder are scored for each use that labels answer for (`bsl.models.evaluation.uses`). Classes:
accuracy of a linear classifier, trained on the given rows or else cross-validated; and the mean accuracy of the nearest
neighbour and of the nearest centroid of five examples per class (20 draws). Pairs: Spearman of the cosine. Intervals
use 1,000 draws of rows. Each line is printed as soon as it is known; artifacts in the store are not computed again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bsl.flows.adaptation import run_adapt
from bsl.flows.cli.terminal.overrides import changes_of
from bsl.flows.config import override
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.flows.run_context import run_context_of
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.evaluation.correlation import cosine_scores, spearman
from bsl.models.evaluation.labels import class_accuracies, labelled_of
from bsl.models.evaluation.significance.hierarchical import difference_of, draws_of
from bsl.models.evaluation.significance.paired import Difference
from bsl.models.evaluation.sweep import outcome_draws
from bsl.storage.artifacts.refs import CheckpointRef, ProofRef, ReportRef
from bsl.tasks.embedding.encoders import encoder_folder, find_encoder
from bsl.tasks.figures import AdaptationFigures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsl.storage.artifacts.store import Store

STARTS = ("embedded:mini-sentence", "embedded:bert-mini")
PAIRS = {"text": "sentence_1", "text_2": "sentence_2"}  # columns of label files
HEAD = "| text | start | seed | verdict | use | verdict for it | labels: before → after | difference | labels say |"


@dataclass(frozen=True)
class Judged:
    """A verdict and the trained encoder it judges.

    Attributes:
        word: The word of the verdict.
        answers: Use → better, same or worse.
        trained: The trained encoder.
    """

    word: str
    answers: dict[str, str]
    trained: CheckpointRef


@dataclass(frozen=True)
class Scored:
    """An encoder's scores on labels, for one use.

    Attributes:
        rows: (N,) cosine of each pair, or accuracy for each text.
        value: Spearman, or the mean of the rows.
    """

    rows: NDArray[np.float64]
    value: float


@dataclass(frozen=True)
class Case:
    """A verdict, and the scores of the start and of the trained encoder for one use, with their difference."""

    word: str
    use: str
    answer: str
    before: Scored
    after: Scored
    difference: Difference

    @property
    def finding(self) -> str:
        """Whether labels improve, by the interval of the difference."""
        found = self.difference
        return "above" if found.ci_low > 0 else "below" if found.ci_high < 0 else "no difference"


def main() -> int:
    """Print a row per adaptation and use, then the number of cases for each verdict and finding of labels."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starts", nargs="+", default=STARTS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--texts", nargs="+", help="names of files, in this order; all unless given")
    parser.add_argument("--labels", type=float, default=0.0, help="share of the rows whose labels are given")
    parser.add_argument("--set", nargs="*", default=(), dest="changes")
    arguments = parser.parse_args()
    counts: dict[tuple[str, str, str], int] = {}
    print(f"{HEAD}\n|{'---|' * 9}", flush=True)
    for name in arguments.texts or sorted(path.stem for path in arguments.folder.glob("*.parquet")):
        path = arguments.folder / f"{name}.parquet"
        for start in arguments.starts:
            for seed in range(arguments.seeds):
                for case in _cases(path, start, seed, arguments):
                    key = case.use, case.answer, case.finding
                    counts[key] = counts.get(key, 0) + 1
                    print(f"| {' | '.join([path.stem, Path(start).name, str(seed), *_cells(case)])} |", flush=True)
    print("\n| use | verdict for it | labels say | cases |\n|---|---|---|--:|")
    for (use, answer, finding), count in sorted(counts.items()):
        print(f"| {use} | {answer} | {finding} | {count} |")
    return 0


def _cells(case: Case) -> list[str]:
    before, after, found = case.before, case.after, case.difference
    spread = f"{100 * found.value:+.2f} [{100 * found.ci_low:+.2f}, {100 * found.ci_high:+.2f}]"
    return [
        case.word,
        case.use,
        case.answer,
        f"{100 * before.value:.2f} → {100 * after.value:.2f}",
        spread,
        case.finding,
    ]


def _cases(path: Path, start: str, seed: int, arguments: argparse.Namespace) -> Iterator[Case]:
    table, given = pl.read_parquet(path), None
    config = override(AdaptConfig(), changes_of(arguments.changes))
    seeds = {"training": {"seed": seed}, "label_training": {"seed": seed}, "proof": {"seed": seed}}
    config = override(config, seeds)
    site = run_context_of(None)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.labels:
            table = table.sample(fraction=1, shuffle=True, seed=seed)
            rows = round(arguments.labels * table.height)
            text = str(Path(folder) / f"{path.stem}.csv")
            given, table = table[:rows], table[rows:]
            (given.rename(PAIRS) if "text_2" in table.columns else given).write_csv(text)
        else:
            text = _written(table, Path(folder), path.stem)
        report = run_adapt([text], start, text if arguments.labels else None, config, site)
        verdict = _judged(site.open_store(), report)
    folders = [encoder_folder(site.open_store(), one) for one in (find_encoder(site, start, None), verdict.trained)]
    encoders = [SentenceEncoder.load(own, EncoderConfig(model=start)) for own in folders]
    before, after = (_scored(encoder, table, given) for encoder in encoders)
    for use in before:
        first, second = before[use], after[use]
        pair = (first, second)
        if use == "similarity":
            drawn = [draws_of(table["score"].to_numpy(), scored.rows[None]) for scored in pair]
        else:
            drawn = list(outcome_draws([scored.rows[None] for scored in pair], np.arange(len(first.rows))))
        answer = verdict.answers.get(use, "not tested")
        yield Case(verdict.word, use, answer, first, second, difference_of(*drawn))


def _written(table: pl.DataFrame, folder: Path, name: str) -> str:
    """Write the text without its labels: a CSV if it has titles or documents, else lines in random order."""
    if columns := [column for column in ("document", "title") if column in table.columns]:
        table.select(*columns, "text").write_csv(folder / f"{name}.csv")
        return str(folder / f"{name}.csv")
    sides = [table[side] for side in ("text", "text_2") if side in table.columns]
    lines = pl.concat([side.alias("text") for side in sides]).str.replace_all(r"\s+", " ").unique().sort()
    (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines.shuffle(seed=0)))
    return str(folder / f"{name}.txt")


def _judged(store: Store, report: ReportRef) -> Judged:
    proof = store.manifest(report).provenance.inputs["proof"].key
    figures = store.manifest(report).figures_as(AdaptationFigures)
    trained = store.manifest(ProofRef(key=proof)).provenance.inputs["adapted"].key
    answers = {str(row["use"]): str(row["answer"]) for row in figures.uses}
    return Judged(figures.verdict, answers, CheckpointRef(key=trained))


def _scored(encoder: SentenceEncoder, table: pl.DataFrame, given: pl.DataFrame | None) -> dict[str, Scored]:
    """Return use → scores on the rows of `table`; a classifier learns from `given`, if rows were given."""
    if "score" in table.columns:
        cosines = cosine_scores(*(encoder.encode(table[side].to_list()) for side in ("text", "text_2")))
        return {"similarity": Scored(cosines, spearman(cosines, table["score"].to_numpy()))}
    names = tuple(sorted({*table["label"], *([] if given is None else given["label"])}))
    tables = [table] if given is None else [table, given]
    labelled = [labelled_of(rows.rename({"text": "text_1"}), "classes", names) for rows in tables]
    rows, *training = [(encoder.encode(list(one.first)), one) for one in labelled]
    found = class_accuracies(*rows, training[0] if training else None)
    scores = {"classify": found.classifier, "group": found.grouping}
    return {use: Scored(accuracy, float(accuracy.mean())) for use, accuracy in scores.items()}


if __name__ == "__main__":
    sys.exit(main())
