"""Transform `toy`: subtract the corpus's mean from vectors."""

from bsl.models.transforms.config import Transform


class ToyTransform(Transform):
    @classmethod
    def fit(cls, vectors_ND, config, execution):
        return cls(config, {"mean": vectors_ND.mean(dim=0)})

    def apply(self, vectors_ND):
        return vectors_ND - self.tensors["mean"]
