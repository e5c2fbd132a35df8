"""View `toy`: the sentence backwards."""

from typing import Literal

from models.views.config import Rewriting


class ToyView(Rewriting):
    """The words of the sentence in reverse."""

    name: Literal["toy"] = "toy"


def backwards(texts: list[str], seeds: list[int]) -> list[str]:
    return [" ".join(reversed(text.split())) for text in texts]
