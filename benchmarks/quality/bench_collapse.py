"""Which target settings collapse, and does the training loop detect it: target_norm × momentum on the embedded encoder.

    python -m benchmarks.quality.bench_collapse                     3 × 5 cells, 3 seeds, 90 steps each; resumes
    python -m benchmarks.quality.bench_collapse --quick             2 × 1 cells, 1 seed, 60 steps
    python -m benchmarks.quality.bench_collapse --print             the table of the finished runs

Pairs are the entailments of the embedded NLI sample; batch 64, the paper's predictor, the released code's optimizer
(AdamW without decay), bf16. No run stops early: each evaluation calls `finding_of` as the training loop does, and the
run records the first step with a finding.

The collapse itself is judged independently of the detector, which sees dev: by STS-B *test* with the encoder of the
last step, and with that of the first finding, since some runs recover. A run has collapsed if such an encoder's
correlation is lower than the start's by more than LOST, or if its vectors form a cone: a mean cosine of different
sentences above CONE. Each finished run is one line of a JSONL file, and is not repeated.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TypedDict

import numpy as np
import polars as pl
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.evaluation.correlation import cosine_scores, spearman
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.runtime.precision import computed
from bsl.models.runtime.rows import unit_vectors
from bsl.models.training.config import TrainingConfig
from bsl.models.training.dev_evaluation import StepEvaluation, finding_of
from bsl.models.training.loop import train
from bsl.models.training.snapshots import Execution, read_snapshot

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "storage" / "assets"
NORMS, MOMENTA = ("none", "center", "standardize"), (0.0, 0.9, 0.99, 0.999, 1.0)
EVALUATIONS = 6
LOST, CONE = 0.15, 0.995
MODEL = EncoderConfig(model="embedded:bert-mini")
PRECISION = computed("auto", "cpu")


def pairs() -> pl.DataFrame:
    """Return premises and entailed hypotheses as pairs."""
    rows = pl.read_parquet(ASSETS / "nli-sample" / "train.parquet").filter(pl.col("label") == 0)
    return rows.select(text_1="premise", text_2="hypothesis")


def scored(split: str) -> pl.DataFrame:
    return pl.read_parquet(ASSETS / "stsb" / f"{split}.parquet")


def judge(encoder: SentenceEncoder, test: pl.DataFrame) -> dict[str, float]:
    """Return test Spearman, and the mean cosine of different sentences of the test set."""
    one, two = (encoder.encode(test[side].to_list()) for side in ("sentence1", "sentence2"))
    cosines = cosine_scores(one, two)
    mean = unit_vectors(one).mean(axis=0)
    n = len(one)
    cone = (n * float(mean @ mean) - 1) / (n - 1)  # mean of all products without rows' own ones (1 each)
    rho = spearman(cosines, test["score"].to_numpy()) if np.ptp(cosines) > 0 else 0.0
    return {"test": float(rho), "mean_cosine": cone}


class Raised(TypedDict):
    """The detector's first finding."""

    step: int
    message: str


class Run(TypedDict):
    """A finished run; the lists begin with the start's value and end with the last step's."""

    target_norm: str
    momentum: float
    seed: int
    steps: int
    lr: float
    dev: list[float]
    test: list[float]
    mean_cosine: list[float]
    std: list[float]
    effective_rank: list[float]
    judged: dict[int, float]
    collapsed: bool
    raised: Raised | None
    pairs_per_s: float


class Watch:
    """Applies the detector to each evaluation of a finished run, as the loop does, which here did not stop."""

    def __init__(self, log: pl.DataFrame, steps: int) -> None:
        rows = log.filter(pl.col("alignment").is_not_null()).select(field.name for field in fields(StepEvaluation))
        self.history = [StepEvaluation(**row) for row in rows.to_dicts()]
        self.raised: Raised | None = None
        for number, seen in enumerate(self.history, 1):
            if finding := finding_of(self.history[:number], TrainingConfig(), final=seen.step == steps):
                self.raised = self.raised or {"step": seen.step, "message": finding}


def one_run(norm: str, momentum: float, seed: int, steps: int, lr: float) -> Run:
    encoder, every = SentenceEncoder.load(ASSETS / "bert-mini", MODEL), max(1, steps // EVALUATIONS)
    config = TrainingConfig(
        objective=BSLConfig(target_norm=norm, momentum=momentum),
        lr=lr,
        optimizer="adamw",
        weight_decay=0.0,
        max_steps=steps,
        epochs=100,
        seed=seed,
        eval_every=every,
        select="last",
        collapse=None,
        precision=PRECISION,
    )
    test = scored("test")
    before = judge(encoder, test)
    with tempfile.TemporaryDirectory() as work:
        saving = Execution(work=Path(work), save_every=every, keep=2 * EVALUATIONS)
        result = train(pairs(), encoder, config, dev=scored("dev"), execution=saving)
        watch = Watch(result.log, steps)
        after = judge(encoder.with_network(result.encoder), test)
        judged = {steps: after}
        if watch.raised and watch.raised["step"] < steps:
            saved = read_snapshot(Path(work) / f"step-{watch.raised['step']:08}")
            encoder.network.load_state_dict(saved.tensors["online"])
            judged[saved.step] = judge(encoder, test)
    start, end = watch.history[0], watch.history[-1]
    return {
        "target_norm": norm,
        "momentum": momentum,
        "seed": seed,
        "steps": steps,
        "lr": lr,
        "dev": [seen.dev_spearman for seen in watch.history if seen.dev_spearman is not None],
        "test": [before["test"], after["test"]],
        "mean_cosine": [before["mean_cosine"], after["mean_cosine"]],
        "std": [start.std, end.std],
        "effective_rank": [start.effective_rank, end.effective_rank],
        "judged": {step: seen["test"] for step, seen in sorted(judged.items())},
        "collapsed": any(
            before["test"] - seen["test"] > LOST or seen["mean_cosine"] > CONE for seen in judged.values()
        ),
        "raised": watch.raised,
        "pairs_per_s": round(result.throughput.pairs_per_s, 1),
    }


def key(row: Run) -> tuple[object, ...]:
    return row["target_norm"], row["momentum"], row["seed"], row["steps"], row["lr"]


def table(rows: list[Run]) -> str:
    """Return a table with one line per cell: means over seeds ± standard deviation, and the detector's findings."""
    lines = [
        "| target_norm | momentum | seeds | dev best | dev end | test end | std | effective rank | mean cosine "
        "| collapsed | stopped (at step) |",
        "|" + "---|" * 11,
    ]
    cells = {(row["target_norm"], row["momentum"]) for row in rows}
    for norm, momentum in sorted(cells, key=lambda cell: (NORMS.index(cell[0]), cell[1])):
        of = [row for row in rows if (row["target_norm"], row["momentum"]) == (norm, momentum)]
        figures = (
            _spread([100 * max(_numbers(row["dev"][1:])) for row in of]),
            _spread([100 * _numbers(row["dev"])[-1] for row in of]),
            _spread([100 * row["test"][1] for row in of]),
            _spread([row["std"][1] for row in of], 3),
            _spread([row["effective_rank"][1] for row in of], 3),
            _spread([row["mean_cosine"][1] for row in of], 3),
        )
        raised = [row["raised"]["step"] for row in of if row["raised"]]
        verdicts = f"{sum(row['collapsed'] for row in of)} of {len(of)}", f"{len(raised)} of {len(of)} {raised or ''}"
        lines.append("| " + " | ".join([norm, f"{momentum:g}", str(len(of)), *figures, *verdicts]) + " |")
    start = rows[0]
    right = sum(bool(row["raised"]) == row["collapsed"] for row in rows)
    lines.append(
        f"\nStart: dev {100 * start['dev'][0]:.1f}, test {100 * start['test'][0]:.1f}, std {start['std'][0]:.3f}, "
        f"effective rank {start['effective_rank'][0]:.1f}, mean cosine {start['mean_cosine'][0]:.3f}; "
        f"{start['steps']} steps of 64, lr {start['lr']:g}.\n"
        f"Stopped exactly where a run collapsed: {right} of {len(rows)} runs."
    )
    return "\n".join(lines)


def _numbers(values: list[float]) -> list[float]:
    return [0.0 if value != value else value for value in values]  # NaN: all dev pairs have the same score


def _spread(values: list[float], digits: int = 1) -> str:
    deviation = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("bench-collapse.jsonl"))
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--norms", nargs="+", choices=NORMS, default=NORMS)
    parser.add_argument("--momenta", nargs="+", type=float, default=MOMENTA)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--print", action="store_true", help="run nothing")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.norms, chosen.momenta, chosen.seeds, chosen.steps = ("none", "standardize"), (0.999,), 1, 60
    torch.set_num_threads(chosen.threads)
    rows: list[Run] = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    print(f"precision: {PRECISION}")
    rows = [row for row in rows if "judged" in row and (row["steps"], row["lr"]) == (chosen.steps, chosen.lr)]
    done = {key(row) for row in rows}
    for seed, norm, momentum in itertools.product(range(chosen.seeds), chosen.norms, chosen.momenta):
        if chosen.print or (norm, momentum, seed, chosen.steps, chosen.lr) in done:
            continue
        row = one_run(norm, momentum, seed, chosen.steps, chosen.lr)
        with chosen.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        rows.append(row)
        print(json.dumps(row), flush=True)
    print(table(rows) if rows else f"{chosen.out}: no rows of {chosen.steps} steps at lr {chosen.lr:g}")


if __name__ == "__main__":
    main()
