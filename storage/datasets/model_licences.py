"""Licences of the Hub's models that recipes start from, as their model cards state them."""

from __future__ import annotations

from typing import Final

MODEL_LICENCES: Final = {
    "FacebookAI/roberta-base": "MIT",
    "FacebookAI/xlm-roberta-base": "MIT",
    "google-bert/bert-base-multilingual-cased": "Apache-2.0",
    "google-bert/bert-base-uncased": "Apache-2.0",
    "sentence-transformers/LaBSE": "Apache-2.0",
}
