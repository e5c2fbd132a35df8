"""Settings of a training run, and those of fine-tunings that score an encoder."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.config import ObjectiveConfig
from bsl.models.objectives.supervised_config import CrossRegressionConfig, RegressionConfig
from bsl.models.runtime.precision import Precision
from bsl.storage.record import Record


class CollapseConfig(Record):
    """Thresholds for a collapsed run, compared with the evaluation before the first step."""

    max_dev_drop: float = Field(default=0.15, gt=0, le=2)
    """Largest allowed drop of dev Spearman (in [-1, 1]) below the original encoder."""
    min_effective_rank: float = Field(default=2.0, ge=1)
    """Effective rank of the sample's embeddings below which they count as one point or line."""
    min_std: float = Field(default=0.01, ge=0, le=1)
    """Mean standard deviation per dimension of unit vectors, times √d (1 = even), below which they are one point."""
    patience: int = Field(default=2, ge=1, le=100)
    """Evaluations in a row that must look collapsed to stop the run; at the last evaluation, one is enough."""


class TrainingConfig(Record):
    """Optimiser, schedule, data order and selection of one training run."""

    objective: ObjectiveConfig = BSLConfig()
    """Loss and its networks; a bare name uses the objective's defaults."""
    optimizer: Literal["adam", "adamw"] = "adamw"
    """`adamw`: Adam with decoupled weight decay, the usual choice for BERT and that of the released code.

    `adam` follows Table 8's "Adam" with weight decay literally, as L2 in the gradient. Caution: Adam normalises that
    gradient too, so weights that the loss seldom reaches (rare words) shrink by about `lr` a step, to zero."""
    lr: float = Field(default=5e-4, gt=0, le=1)
    """Peak learning rate (paper §4: 5e-4; released code: 1e-4). Table 8 searched {1e-4, 2e-4, 5e-4}; our text of the
    table lacks the bold print of the choices, but its spacing hints at 2e-4."""
    weight_decay: float = Field(default=0.01, ge=0, le=1)
    """On matrices only, not on biases and norms. Table 8 searched {0.1, 0.01, 0.001}; its spacing hints at 0.01."""
    eps: float = Field(default=1e-6, gt=0, le=1e-2)
    """Adam's ε (Table 8)."""
    bias_correction: bool = True
    """Whether Adam corrects its averages for their start at 0. Without it, as released for IS-BERT (`correct_bias`),
    the first steps are larger: up to 6.6 times, and by half or more for 500 steps."""
    batch_size: int = Field(default=64, ge=2, le=65536)
    """Pairs per step (Table 8: 64)."""
    order: Literal["random", "groups", "given"] = "random"
    """Order of the pairs. `random`: a new permutation each epoch. `groups`: whole groups in random order, such as all
    hypotheses of a premise; only groups larger than a batch are cut, so batches have `batch_size` pairs on average.
    `given`: the order of the input in every epoch (SCL's code)."""
    drop_last: bool = True
    """Drop an epoch's last batch if it is smaller, because batch statistics and negatives need equal sizes. A last
    batch of one pair is always dropped."""
    epochs: int = Field(default=1, ge=1, le=1000)
    """Passes over the pairs, each in its own order (Table 8: 1)."""
    max_steps: int | None = Field(default=None, ge=1)
    """Upper bound on optimiser steps; None: no bound except `epochs`. The schedule spans the steps that are run."""
    warmup: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps over which the learning rate rises linearly from 0 (released code: 0.1)."""
    decay: Literal["linear", "constant"] = "linear"
    """Learning rate after warm-up: falls linearly to 0 (released code) or stays constant."""
    clip: float = Field(default=1.0, gt=0)
    """Bound on the norm of all gradients together (released code: 1)."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the predictor's initial weights, dropout and the order of the pairs."""
    precision: Precision = "auto"
    """Forward arithmetic of the encoders and predictor; weights, target, pooling and loss stay fp32. `auto`: bf16 where
    the device is faster in it, else fp32. The presets of published rows use fp32, so that a row is the same on
    every machine."""
    length_buckets: int | None = Field(default=None, ge=2, le=100_000)
    """Deviation: number of consecutive batches whose pairs are regrouped by length, which reduces padding in attention
    and makes lengths in a batch similar; None leaves batches random, as published. For random order only."""
    eval_every: Annotated[int, Field(ge=1)] | Literal["epoch", "tenth"] | None = None
    """Steps between evaluations. `epoch`: one evaluation after each epoch; `tenth`: ⌊steps / 10⌋, as the released code
    rounds; None: ⌈steps / 10⌉. The start and the end are always evaluated."""
    select: Literal["best", "best-or-start", "last"] = "best"
    """Select the online encoder of the best dev Spearman (needs a dev set; else the last) or of the last step.
    Deviation: with `best-or-start` the original encoder is a candidate too; as published (`best`), it is not. A run
    that `collapse` stops selects the best encoder so far, the original included."""
    dev_similarity: Literal["cosine", "best-of-four"] = "cosine"
    """Similarity that orders the dev pairs. `cosine`: as in all other evaluations. `best-of-four`: cosine, Manhattan,
    Euclidean or dot product, whichever has the highest Spearman at that evaluation (released code)."""
    collapse: CollapseConfig | None = CollapseConfig()
    """Thresholds that stop a harmful run; None never stops."""

    @model_validator(mode="after")
    def _buckets_are_of_random_batches(self) -> Self:
        if self.length_buckets is not None and self.order != "random":
            raise ValueError(
                f"length_buckets={self.length_buckets} needs order='random' (found {self.order!r}), because buckets "
                "would change the order. Remove one of them."
            )
        return self


STSB_CONFIG: Final = TrainingConfig(
    objective=RegressionConfig(),
    lr=2e-5,
    batch_size=16,
    epochs=4,
    drop_last=False,
    precision="fp32",
    eval_every="epoch",
    collapse=None,
)
"""SBERT fine-tuned on STS-B (its sections 3 and 4.2): batch 16, 4 epochs, lr 2e-5; the best dev epoch is used."""

AFS_CONFIG: Final = STSB_CONFIG.model_copy(update={"batch_size": 32, "epochs": 3})
"""UKP's settings for AFS: batch 32, 3 epochs; no dev set, so the last epoch is used.

Each pair is used in both orders; the encoder truncates sentences at 64 tokens.
"""

STSB_CROSS_CONFIG: Final = STSB_CONFIG.model_copy(update={"objective": CrossRegressionConfig()})
"""A cross-encoder fine-tuned on STS-B (SBERT section 4.2, BERT-STSb): `STSB_CONFIG` with another objective."""

AFS_CROSS_CONFIG: Final = AFS_CONFIG.model_copy(update={"objective": CrossRegressionConfig(), "bias_correction": False})
"""A cross-encoder fine-tuned on AFS (SBERT section 4.3, BERT-AFS): UKP's settings (its train.py, train_misra.sh).

As `AFS_CONFIG`, without bias correction, which BertAdam lacks; FIDELITY.md lists the other differences.
"""
