"""Natural language inference: the sentences that BSL is trained on, and labelled pairs."""

from __future__ import annotations

from typing import Final

from storage.datasets.declaration import TRAIN_DEV_TEST, Dataset

_SNLI = "Bowman et al., 2015. A large annotated corpus for learning natural language inference. EMNLP."
_MULTINLI = "Williams et al., 2018. A broad-coverage challenge corpus for sentence understanding. NAACL."
_OANC = "OANC terms; fiction parts CC BY 3.0 and CC BY-SA 3.0"

NLI: Final = (
    Dataset(
        name="snli",
        licence="CC BY-SA 4.0",
        citation=_SNLI,
        splits=TRAIN_DEV_TEST,
        hub_id="stanfordnlp/snli",
        revision="cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
    ),
    Dataset(
        name="multi_nli",
        licence=_OANC,
        citation=_MULTINLI,
        splits={"train": "train", "dev_matched": "validation_matched", "dev_mismatched": "validation_mismatched"},
        hub_id="nyu-mll/multi_nli",
        revision="da70db2af9d09693783c3320c4249840212ee221",
    ),
    Dataset(
        name="all-nli",
        licence=f"SNLI CC BY-SA 4.0, MultiNLI {_OANC}",
        citation=f"{_SNLI} {_MULTINLI}",
        splits={"train": "train", "dev": "dev", "test": "test"},
        hub_id="sentence-transformers/all-nli",
        hub_config="pair-class",
        # Other revisions hold other row counts under the same configuration names.
        revision="d482672c8e74ce18da116f430137434ba2e52fab",
    ),
    Dataset(
        name="back_translated_nli",
        licence=f"not stated; made of SNLI (CC BY-SA 4.0) and MultiNLI ({_OANC})",
        citation="Zhang et al., 2021. Bootstrapped Unsupervised Sentence Representation Learning. ACL.",
        splits={"train": "train"},
        originals={"train": ("back_translated_nli/**/back_translated_nli.txt*",)},
        original_format="view-pairs",
        remedy=(
            "download the authors' back-translated corpus, which the README of KornWtp/ConGen on GitHub links, and put "
            "back_translated_nli.txt or .txt.zip into the mirror's folder back_translated_nli/"
        ),
    ),
)
