"""What a run is evaluated on, and how encoders are scored."""

from pydantic import BaseModel, ConfigDict, Field

from models.evaluation.config import BootstrapConfig, Precision
from models.evaluation.probe.config import ProbeConfig


class ScoringConfig(BaseModel):
    """How an encoder's vectors are made and scored as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    precision: Precision = "fp32"
    """Arithmetic of the encoder; bf16 is faster and moves scores by hundredths of a point."""
    bootstrap: BootstrapConfig = BootstrapConfig()
    """How the 95 % interval of each figure is drawn."""
    probe: ProbeConfig = ProbeConfig()
    """How SentEval's classifiers are trained."""


class EvaluationConfig(ScoringConfig):
    """What a run's encoder is scored on, before and after training."""

    sets: tuple[str, ...] = Field(("stsb/dev", "stsb/test"), min_length=1)
    """Suites such as `sts` or `senteval`, and sets such as `stsb/dev` or `trec`, in the order of the tables."""
    dev: str | None = "stsb/dev"
    """Set whose Spearman selects the best step of training; None keeps the last step."""
