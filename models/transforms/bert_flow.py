"""BERT-flow (Li et al., 2020): a Glow fitted on the vectors of a frozen encoder, by maximum likelihood.

Design choices
- parameters, gradients and Adam's moments are four flat vectors, so a step is a few operations on these, not per layer
- the fit always runs on the CPU, because the network is so small that a GPU would wait for kernel launches
- a step's batch depends on its number alone, so a snapshot needs no iterators and a resumed fit gives the same bytes

Shapes: N vectors, D their width, B vectors of a step, P parameters.
"""

from __future__ import annotations

import hashlib
import math
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import torch

from bsl.models.errors import EvaluationError, InterruptedRunError
from bsl.models.training.loop import run_steps
from bsl.models.training.snapshots import Saving, Snapshot, copied, newest_snapshot
from bsl.models.transforms.config import Transform
from bsl.models.transforms.glow import FlatAdam, Glow

if TYPE_CHECKING:
    from bsl.models.training.snapshots import Execution
    from bsl.models.transforms.config import FlowConfig

SAVE_EVERY: Final = 2_000  # steps, of milliseconds each
REPORT_EVERY: Final = 100  # steps
MEASURED: Final = 8_192  # vectors for reporting bits per dimension before and after the fit
LEAST_SPREAD: Final = 1e-3  # of a dimension in the first batch, relative to all vectors
_CHUNK: Final = 8_192  # vectors per forward pass


class Flow(Transform):
    """BERT-flow: map x to the z of a Glow, of the same width but not of unit length."""

    @classmethod
    def fit(cls, vectors_ND: torch.Tensor, config: FlowConfig, execution: Execution) -> Flow:
        """Minimise bits per dimension; takes minutes for a million vectors, and resumes from `execution.work`.

        Raises:
            EvaluationError: The vectors are too few or too narrow, one of their dimensions is constant, or the loss is
                not finite.
            InterruptedRunError: `execution.should_stop` returned True; the state is saved.
            ResumeError: `execution.work` has snapshots of another fit.
        """
        _check(vectors_ND, config)
        fit = _Fit(vectors_ND, config)
        fit.go(execution)
        fitted = cls(config, fit.network.state_dict())
        fitted.figures = {"steps": fit.step, "bits_per_dimension_at_start": fit.start, "bits_per_dimension": fit.bits()}
        return fitted

    def apply(self, vectors_ND: torch.Tensor) -> torch.Tensor:
        """Return z of each vector: (N, D), float32."""
        with torch.no_grad():
            return torch.cat([self.network(part_BD.double()).float() for part_BD in torch.split(vectors_ND, _CHUNK)])

    @cached_property
    def network(self) -> Glow:
        """The fitted network, in float64, because a forward pass is cheap."""
        network = Glow(len(self.tensors["levels.0.0.norm.shift_W"]), self.config)
        network.load_state_dict(self.tensors)
        return network.double().eval()


class _Fit:
    """State of a fit between two steps."""

    def __init__(self, vectors_ND: torch.Tensor, config: FlowConfig) -> None:
        self.vectors_ND, self.config = vectors_ND.float(), config
        self.batch = min(config.batch_size, len(vectors_ND))
        self.per_epoch = len(vectors_ND) // self.batch
        total = self.per_epoch * config.epochs
        self.total = total if config.max_steps is None else min(total, config.max_steps)
        self.network = Glow(vectors_ND.shape[1], config)
        self._epoch, self._order_N = -1, torch.empty(0)
        _check_spread(self._rows(1), self.vectors_ND, config)
        self.network.init_actnorm(self._rows(1))
        self.adam = FlatAdam(self.network, config)
        self.step = 0
        self.start = self.bits()

    def go(self, execution: Execution) -> None:
        """Take the remaining steps."""
        saving = None if execution.work is None else Saving(execution.work, execution, SAVE_EVERY)
        fingerprint = self._fingerprint() if execution.work else ""
        if execution.work and (saved := newest_snapshot(execution.work, fingerprint)) is not None:
            self.step = saved.step
            self.adam.restore(saved.tensors["flow"])
        take = partial(self._advance, execution)
        if run_steps(self, take, partial(self._snapshot, fingerprint), saving, execution.should_stop):
            raise InterruptedRunError(self.step, self.total, str(execution.work) if execution.work else None)

    @property
    def over(self) -> bool:
        """Whether all steps are taken."""
        return self.step >= self.total

    def _snapshot(self, fingerprint: str) -> Snapshot:
        return Snapshot(fingerprint, self.step, {"flow": copied(self.adam.state)}, {})

    @torch.no_grad()
    def bits(self) -> float:
        """Return the bits per dimension of the first vectors, for reports."""
        return float(self.network.bits_per_dimension(self.vectors_ND[:MEASURED]))

    def _advance(self, execution: Execution) -> None:
        self.step += 1
        loss = self.network.bits_per_dimension(self._rows(self.step))
        loss.backward()  # type: ignore[no-untyped-call]  # torch has none for it
        self.adam.step()
        if self.step % REPORT_EVERY == 0 or self.step == self.total:
            bits = float(loss.detach())
            if not math.isfinite(bits):
                raise EvaluationError(
                    f"bits per dimension are {bits} at step {self.step}, expected a finite number. Lower transform.lr."
                )
            if execution.on_progress is not None:
                execution.on_progress(self.step, self.total, f"{bits:.3f} bits per dimension")

    def _rows(self, step: int) -> torch.Tensor:
        """Return the batch of a step, (B, D)."""
        epoch, number = divmod(step - 1, self.per_epoch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self.config.seed + epoch)
            self._epoch, self._order_N = epoch, torch.randperm(len(self.vectors_ND), generator=generator)
        return self.vectors_ND[self._order_N[number * self.batch : (number + 1) * self.batch]]

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(self.config.model_dump_json().encode())
        digest.update(repr(tuple(self.vectors_ND.shape)).encode())
        digest.update(self.vectors_ND.contiguous().numpy().data)
        return digest.hexdigest()


def _check(vectors_ND: torch.Tensor, config: FlowConfig) -> None:
    """Refuse vectors on which no flow can be fitted."""
    vectors, width = vectors_ND.shape
    if width < 2**config.levels:
        raise EvaluationError(
            f"a flow of {config.levels} levels needs vectors of width {2**config.levels} or more (found {width}), "
            "because each level halves them. Lower transform.levels."
        )
    if vectors < 2:
        raise EvaluationError(f"cannot fit a flow on {vectors} vectors, expected at least 2. Use a larger corpus.")
    constant = (vectors_ND.amax(dim=0) == vectors_ND.amin(dim=0)).nonzero()
    if len(constant):
        raise EvaluationError(
            f"cannot fit a flow: {len(constant)} of {width} dimensions are constant over {vectors:,} vectors (first: "
            f"dimension {int(constant[0])}). Check the encoder, or use a larger corpus."
        )


def _check_spread(batch_BD: torch.Tensor, vectors_ND: torch.Tensor, config: FlowConfig) -> None:
    """Refuse a first batch in which a dimension hardly varies, because its scale would blow up all other vectors."""
    std_D = vectors_ND.std(dim=0, correction=0)
    constant = (batch_BD.std(dim=0, correction=0) < LEAST_SPREAD * std_D).nonzero()
    if len(constant):
        raise EvaluationError(
            f"cannot initialise a flow: {len(constant)} of {vectors_ND.shape[1]} dimensions hardly vary in the first "
            f"{len(batch_BD)} vectors (first: dimension {int(constant[0])}). Raise transform.batch_size (now "
            f"{config.batch_size}), or check the encoder."
        )
