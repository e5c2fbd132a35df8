"""A small encoder with each kind of heads, ours and sentence-transformers', and its folder."""

import json

import numpy as np
import torch
from sentence_transformers.sentence_transformer import modules as theirs

from bsl.models.encoder.cnn import CNN, TokenReLU
from bsl.models.encoder.heads import TOKENS, Dense, Normalize
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from tests.tiny_encoder import BACK_DE, ORIGINALS, WIDTH, tiny_encoder

TEXTS = [*ORIGINALS, *BACK_DE, "x", "dogs"]
ROWS = np.array([5, 0, 9, 3, 3, 8])


def their_relu(width):
    """Return sentence-transformers' ReLU of token vectors, which exists only in a Dense layer."""
    same = {"bias": False, "init_weight": torch.eye(width), "module_input_name": TOKENS}
    return theirs.Dense(width, width, activation_function=torch.nn.ReLU(), **same)


# Name → heads on tokens and on sentences, ours and sentence-transformers', and the output width.
KINDS = {
    "Dense": (lambda: ([], [Dense(WIDTH, 12)]), lambda: ([], [theirs.Dense(WIDTH, 12)]), 12),
    "Dense, residual": (
        lambda: ([], [Dense(WIDTH, 12, bias=False, activation=torch.nn.GELU, residual=True)]),
        lambda: (
            [],
            [theirs.Dense(WIDTH, 12, bias=False, activation_function=torch.nn.GELU(), use_residual=True)],
        ),
        12,
    ),
    "Dense twice, Normalize": (
        lambda: ([], [Dense(WIDTH, WIDTH, residual=True), Dense(WIDTH, 8), Normalize()]),
        lambda: ([], [theirs.Dense(WIDTH, WIDTH, use_residual=True), theirs.Dense(WIDTH, 8), theirs.Normalize()]),
        8,
    ),
    "Normalize, Dense": (
        lambda: ([], [Normalize(), Dense(WIDTH, 5)]),
        lambda: ([], [theirs.Normalize(), theirs.Dense(WIDTH, 5)]),
        5,
    ),
    "CNN": (
        lambda: ([CNN(WIDTH, 6, (1, 3, 5))], []),
        lambda: ([theirs.CNN(WIDTH, 6, [1, 3, 5])], []),
        18,
    ),
    "CNN, TokenReLU": (
        lambda: ([CNN(WIDTH, 6, (1, 3)), TokenReLU(12)], []),
        lambda: ([theirs.CNN(WIDTH, 6, [1, 3]), their_relu(12)], []),
        12,
    ),
    "CNN, Dense, Normalize": (
        lambda: ([CNN(WIDTH, 6, (3,))], [Dense(6, 7), Normalize()]),
        lambda: ([theirs.CNN(WIDTH, 6, [3])], [theirs.Dense(6, 7), theirs.Normalize()]),
        7,
    ),
}


def ours(folder, kind, architecture="bert", **fields):
    bare, tokenizer = tiny_encoder(folder, architecture)
    token_heads, sentence_heads = KINDS[kind][0]()
    ends = bool(sentence_heads) and isinstance(sentence_heads[-1], Normalize)
    config = bare.config.model_copy(update={"normalize": ends, **fields})
    return SentenceEncoder(Encoder(bare.backbone, config, token_heads, sentence_heads).eval(), tokenizer)


def rewrite(path, change):
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
