"""Two losses are equal, and so are their gradients."""

from collections.abc import Sequence

import pytest
import torch


def assert_equal_losses(
    ours: torch.Tensor, theirs: torch.Tensor, parameters: Sequence[torch.Tensor], value: float, slope: float
) -> None:
    """Compare values to `value` and gradients to `slope`; both losses use the same parameters."""
    assert ours.item() == pytest.approx(theirs.item(), abs=value)
    found, expected = (
        torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True) for loss in (ours, theirs)
    )
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=100 * slope, atol=slope)
    assert max(one.abs().max().item() for one in found if one is not None) > 1e-4
