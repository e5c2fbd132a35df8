"""Weight interpolation of an encoder before and after fine-tuning (WiSE-FT: Wortsman et al., 2022).

Fine-tuning often gains on its own data and loses on other data. Interpolation with the original weights recovers more
of the loss than it gives up of the gain.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from models.encoder.sentence_encoder import SentenceEncoder

    Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def merged(start: SentenceEncoder, trained: SentenceEncoder, share: float) -> SentenceEncoder:
    """Return a new encoder with the weights (1 − share) · start + share · trained, share in [0, 1], in evaluation mode.

    Raises:
        EncoderError: Their weights differ in names or shapes.
    """
    first, second = start.network.state_dict(), trained.network.state_dict()
    if {name: x.shape for name, x in first.items()} != {name: x.shape for name, x in second.items()}:
        raise EncoderError(
            f"{start.config.model} and {trained.config.model}: weights differ in names or shapes, expected equal ones. "
            "Merge an encoder only with one that was trained from it."
        )
    between = copy.deepcopy(start.network)
    between.load_state_dict(
        {
            name: x.lerp(second[name].to(x), share) if x.is_floating_point() else second[name]
            for name, x in first.items()
        }
    )
    return start.with_network(between.eval())
