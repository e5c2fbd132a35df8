"""Configuration of evaluation: sets, precision, probes and bootstrap."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from bsl.models.runtime.precision import Precision
from bsl.storage.filesystem.urls import Public
from bsl.storage.record import Record

ProbeProtocol = Literal["senteval", "fast"]
MARGIN: Final = 1.0
"""Default maximum difference, in points, of a reproduced score from the published one: seeds of one recipe differ by
about that, and most published scores are of one seed."""


class ProbeConfig(Record):
    """SentEval's settings for published results: kfold 10, nhid 0, Adam, batch 64, tenacity 5, epoch size 4."""

    protocols: tuple[ProbeProtocol, ...] = Field(("senteval", "fast"), min_length=1)
    """`senteval`: Adam with early stopping, as SentEval computes it; `fast`: exact L2 logistic regression on the same
    folds."""
    folds: int = Field(10, ge=2, le=100)
    """Outer folds, and inner folds of each search."""
    seed: int = Field(1111, ge=0, lt=2**32)
    """Seed of the initial weights, the data order, the 5 % that the last fit holds out, and the folds of TREC and
    MRPC."""
    batch_size: int = Field(64, ge=1, le=65536)
    """Rows per Adam step."""
    epoch_size: int = Field(4, ge=1, le=100)
    """Epochs between two evaluations of the dev accuracy."""
    max_epoch: int = Field(200, ge=0, le=10_000)
    """Epochs after which no new round of `epoch_size` epochs starts."""
    tenacity: int = Field(5, ge=0, le=1000)
    """Patience: number of evaluations without improvement, counted over the whole fit; one more stops the fit."""
    tolerance: float = Field(1e-4, gt=0, lt=1)
    """`fast`: a fit is solved when the gradient's norm, divided by max(1, norm of the weights), is at most this."""


class BootstrapConfig(Record):
    """The bootstrap of confidence intervals."""

    resamples: int = Field(1000, ge=100, le=100_000)
    """Draws for each 95 % interval; differences of many encoders from one get more."""
    seed: int = Field(0, ge=0)
    """Seed of the draws."""


Supervision = Literal["10-fold", "10-fold-disjoint", "cross-topic"]
FOLDS_OF: Final[dict[Supervision, int]] = {"10-fold": 10, "10-fold-disjoint": 10, "cross-topic": 3}
AfsProtocol = Literal["unsupervised", "10-fold", "10-fold-disjoint", "cross-topic"]


class ScoringConfig(Record):
    """Precision of an encoder's vectors, and how scores are computed from them."""

    precision: Precision = "auto"
    """Precision of the encoder; bf16 changes scores by hundredths of a point. `auto`: bf16 on devices with native bf16
    arithmetic, else fp32."""
    bootstrap: BootstrapConfig = BootstrapConfig()
    """Bootstrap of the 95 % interval of each score."""
    probe: ProbeConfig = ProbeConfig()
    """Training of SentEval's classifiers."""


class EvaluationConfig(ScoringConfig):
    """Sets that a run's encoder is scored on, before and after training."""

    sets: tuple[Public, ...] = Field(("stsb/dev", "stsb/test"), min_length=1)
    """Suites such as `sts` or `senteval`, and sets such as `stsb/dev` or `trec`, in the order of the tables."""
    dev: Public | None = "stsb/dev"
    """Dev set whose Spearman selects the best step of training; None keeps the last step."""
