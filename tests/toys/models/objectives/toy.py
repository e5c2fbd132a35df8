"""Objective `toy`, which learns from labels."""

import numpy as np

from bsl.models.objectives.objective import VectorObjective
from bsl.models.objectives.supervised import squared_error
from bsl.models.runtime.device import uploaded


class Toy(VectorObjective):
    def vectors_and_loss(self, batch):
        cosines_B = np.array(self.config.cosines, np.float32)[batch.columns["label"]]
        wanted_B = uploaded(cosines_B, self.online.device)
        vectors = self.online.embed_rows(batch.tokens, batch.rows).chunk(2)
        return vectors, lambda h1_Bd, h2_Bd: squared_error(h1_Bd, h2_Bd, wanted_B)
