"""Write an encoder as a folder that sentence-transformers opens.

Only file formats are written here, in the form that every sentence-transformers release since 2.0 reads; the library
itself is not needed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from models.encoder.transformer import Encoder

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]
NORMALIZE = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}


def export_sentence_transformers(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write weights, tokenizer, pooling and length into `folder`, which is made if needed.

    `SentenceTransformer(folder)` then gives the embeddings of `encode`, and `load_encoder(folder, ...)` reads it too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    encoder.backbone.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _write(folder / "modules.json", [*MODULES, NORMALIZE] if encoder.config.normalize else MODULES)
    _write(
        folder / "sentence_bert_config.json",
        {"max_seq_length": encoder.config.max_length, "do_lower_case": encoder.config.lower_case},
    )
    pooling = {
        "word_embedding_dimension": encoder.width,
        "pooling_mode_cls_token": encoder.config.pooling == "cls",
        "pooling_mode_mean_tokens": encoder.config.pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    (folder / "1_Pooling").mkdir(exist_ok=True)
    _write(folder / "1_Pooling" / "config.json", pooling)
    _write(
        folder / "config_sentence_transformers.json",
        {"similarity_fn_name": "cosine", "prompts": {}, "default_prompt_name": None},
    )


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
