"""Settings of every objective; `name` says which one a section is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from models.bsl.config import BSLConfig, TwoBranchConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


class ContrastiveConfig(BaseModel):
    """The paper's contrastive comparison (§4.4, Table 7): other sentences of the batch are pushed away; no target."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Literal["contrastive"] = "contrastive"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines. The paper does not give its value; SimCSE's is taken."""


class SimCSEConfig(BaseModel):
    """Unsupervised SimCSE (Gao et al., 2021): the first view twice under different dropout; view 2 is not used.

    The encoder must drop something: see `encoder.dropout`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Literal["simcse"] = "simcse"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines (published: 0.05)."""
    head: Literal["mlp", "none"] = "mlp"
    """`mlp`: a linear layer and tanh above the encoder in training only, as published for [CLS]; `none`: without."""


class VICRegConfig(TwoBranchConfig):
    """VICReg (Bardes et al., 2022) against a momentum target, as in UNSEE (Çağatan, 2024)."""

    name: Literal["vicreg"] = "vicreg"
    invariance: float = Field(default=25.0, ge=0)
    """Weight of the squared distance between prediction and target (published: 25)."""
    variance: float = Field(default=25.0, ge=0)
    """Weight of the hinge that keeps each dimension's standard deviation above 1 (published: 25)."""
    covariance: float = Field(default=1.0, ge=0)
    """Weight of the squared covariances between dimensions (published: 1)."""


class BarlowConfig(TwoBranchConfig):
    """Barlow Twins (Zbontar et al., 2021) against a momentum target, as in UNSEE (Çağatan, 2024)."""

    name: Literal["barlow"] = "barlow"
    redundancy: float = Field(default=0.0051, ge=0)
    """λ: weight of the squared correlations between different dimensions (published: 0.0051)."""


def _named(value: object) -> object:
    """A bare name stands for that objective's defaults."""
    return {"name": value} if isinstance(value, str) else value


AnyObjective = BSLConfig | ContrastiveConfig | SimCSEConfig | VICRegConfig | BarlowConfig
ObjectiveConfig = Annotated[AnyObjective, Field(discriminator="name"), BeforeValidator(_named)]

OBJECTIVE_CONFIGS: Mapping[str, type[AnyObjective]] = {
    "bsl": BSLConfig,
    "contrastive": ContrastiveConfig,
    "simcse": SimCSEConfig,
    "vicreg": VICRegConfig,
    "barlow": BarlowConfig,
}

TITLES: Mapping[str, str] = {
    "bsl": "BSL",
    "contrastive": "contrastive training",
    "simcse": "SimCSE",
    "vicreg": "VICReg",
    "barlow": "Barlow Twins",
}
"""What reports call them."""
