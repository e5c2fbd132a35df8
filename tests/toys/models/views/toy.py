"""View `toy`: the sentence backwards."""


def backwards(texts: list[str], seeds: list[int]) -> list[str]:
    return [" ".join(reversed(text.split())) for text in texts]
