"""Compare the verdicts of `bsl adapt` with the change of encoders on labels that no run has read.

    python tests/bench/bench_verdict.py FOLDER [--starts ENCODER…] [--seeds 2] [--labels 0.6] [--set …]

FOLDER, which verdict_texts.py writes, has one text per file, `NAME.parquet`: `text` and `label` (classes), or `text`,
`text_2` and `score` (pairs), with `document` or `title` where the text has them. The encoder is adapted to each text
without its labels; with `--labels`, to that share of its rows with labels, and only the other rows are scored. Then the
start and the trained encoder are scored by labels. Classes: mean accuracy of the nearest neighbour and of the nearest
centroid of five examples per class (20 draws), and V-measure. Pairs: Spearman of the cosine. Intervals use 1,000 draws
of rows. Each line is printed as soon as it is known; artifacts in the store are not computed again.
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

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from flows.adaptation import run_adapt  # noqa: E402
from flows.cli.terminal.overrides import changes_of  # noqa: E402
from flows.config import override  # noqa: E402
from flows.recipes.adaptation import AdaptConfig  # noqa: E402
from flows.run_context import run_context_of  # noqa: E402
from models.encoder.sentence_encoder import SentenceEncoder  # noqa: E402
from models.encoder.serialization.load import saved_config  # noqa: E402
from models.evaluation.correlation import cosine_scores, spearman  # noqa: E402
from models.evaluation.labels import centroid_accuracy, neighbour_accuracy  # noqa: E402
from models.evaluation.metrics import v_measure  # noqa: E402
from models.evaluation.significance.hierarchical import difference_of, draws_of  # noqa: E402
from models.evaluation.significance.paired import Difference  # noqa: E402
from models.evaluation.sweep import outcome_draws  # noqa: E402
from storage.artifacts.refs import CheckpointRef, ProofRef, ReportRef  # noqa: E402
from tasks.embedding.encoders import encoder_folder, find_encoder  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.artifacts.store import Store

STARTS = ("embedded:mini-sentence", "embedded:bert-mini")
PAIRS = {"text": "sentence_1", "text_2": "sentence_2"}  # columns of label files
HEAD = "| text | start | seed | verdict | labels: before → after | difference | labels say | V-measure |"


@dataclass(frozen=True)
class Judged:
    """A verdict and the trained encoder it judges."""

    word: str
    trained: CheckpointRef


@dataclass(frozen=True)
class Scored:
    """An encoder's scores on labels.

    Attributes:
        rows: (N,) cosine of each pair, or the mean accuracy of both classifiers for each text.
        value: Spearman, or the mean of the rows.
        v_measure: V-measure of k-means clusters against classes; None for pairs.
    """

    rows: NDArray[np.float64]
    value: float
    v_measure: float | None


@dataclass(frozen=True)
class Case:
    """A verdict, the scores of the start and of the trained encoder, and their difference."""

    word: str
    before: Scored
    after: Scored
    difference: Difference

    @property
    def finding(self) -> str:
        """Whether labels improve, by the interval of the difference."""
        found = self.difference
        return "above" if found.ci_low > 0 else "below" if found.ci_high < 0 else "no difference"


def main() -> int:
    """Print a row per adaptation, then the number of cases for each verdict and finding of labels."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starts", nargs="+", default=STARTS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--texts", nargs="+", help="names of files, in this order; all unless given")
    parser.add_argument("--labels", type=float, default=0.0, help="share of the rows whose labels are given")
    parser.add_argument("--set", nargs="*", default=(), dest="changes")
    arguments = parser.parse_args()
    counts: dict[tuple[str, str], int] = {}
    print(f"{HEAD}\n|{'---|' * 8}", flush=True)
    for name in arguments.texts or sorted(path.stem for path in arguments.folder.glob("*.parquet")):
        path = arguments.folder / f"{name}.parquet"
        for start in arguments.starts:
            for seed in range(arguments.seeds):
                case = _case(path, start, seed, arguments)
                counts[case.word, case.finding] = counts.get((case.word, case.finding), 0) + 1
                print(f"| {' | '.join([path.stem, Path(start).name, str(seed), *_cells(case)])} |", flush=True)
    print("\n| verdict | labels say | cases |\n|---|---|--:|")
    for (word, finding), count in sorted(counts.items()):
        print(f"| {word} | {finding} | {count} |")
    return 0


def _cells(case: Case) -> list[str]:
    before, after, found = case.before, case.after, case.difference
    spread = f"{100 * found.value:+.2f} [{100 * found.ci_low:+.2f}, {100 * found.ci_high:+.2f}]"
    clusters = ""
    if before.v_measure is not None and after.v_measure is not None:
        clusters = f"{100 * before.v_measure:.1f} → {100 * after.v_measure:.1f}"
    return [case.word, f"{100 * before.value:.2f} → {100 * after.value:.2f}", spread, case.finding, clusters]


def _case(path: Path, start: str, seed: int, arguments: argparse.Namespace) -> Case:
    table = pl.read_parquet(path)
    config = override(AdaptConfig(), changes_of(arguments.changes))
    seeds = {"training": {"seed": seed}, "label_training": {"seed": seed}, "proof": {"seed": seed}}
    config = override(config, seeds)
    site = run_context_of(None)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.labels:
            table = table.sample(fraction=1, shuffle=True, seed=seed)
            given = round(arguments.labels * table.height)
            text = str(Path(folder) / f"{path.stem}.csv")
            (table[:given].rename(PAIRS) if "text_2" in table.columns else table[:given]).write_csv(text)
            table = table[given:]
        else:
            text = _written(table, Path(folder), path.stem)
        report = run_adapt([text], start, text if arguments.labels else None, config, site)
        verdict = _judged(site.open_store(), report)
    encoders = [find_encoder(site, start, None), verdict.trained]
    folders = [encoder_folder(site.open_store(), encoder) for encoder in encoders]
    before, after = (_scored(SentenceEncoder.load(own, saved_config(own, start)), table) for own in folders)
    if "score" in table.columns:
        gold = table["score"].to_numpy()
        drawn = [draws_of(gold, scored.rows[None]) for scored in (before, after)]
    else:
        drawn = list(outcome_draws([before.rows[None], after.rows[None]], np.arange(table.height)))
    return Case(verdict.word, before, after, difference_of(*drawn))


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
    figures = store.manifest(report).figures
    trained = store.manifest(ProofRef(key=proof)).provenance.inputs["adapted"].key
    return Judged(str(figures["verdict"]), CheckpointRef(key=trained))


def _scored(encoder: SentenceEncoder, table: pl.DataFrame) -> Scored:
    if "score" in table.columns:
        cosines = cosine_scores(*(encoder.encode(table[side].to_list()) for side in ("text", "text_2")))
        return Scored(cosines, spearman(cosines, table["score"].to_numpy()), None)
    vectors = encoder.encode(table["text"].to_list())
    classes = np.unique(table["label"].to_numpy(), return_inverse=True)[1]
    rows = (neighbour_accuracy(vectors, classes) + centroid_accuracy(vectors, classes)) / 2
    return Scored(rows, float(rows.mean()), v_measure(vectors, table["label"].cast(pl.String).to_list(), 0))


if __name__ == "__main__":
    sys.exit(main())
