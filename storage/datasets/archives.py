"""Archives on the Hub with data sets' own files."""

from __future__ import annotations

from typing import Final

from storage.datasets.declaration import HubArchive

SENTEVAL: Final = HubArchive(
    hub_id="princeton-nlp/datasets-for-simcse", revision="e145e8b",
    file="senteval.tar",
)  # fmt: skip
"""SentEval's folder `data/downstream`, packed by SimCSE's authors: what most papers since 2019 were scored on.

Of one set alone a table of the Hub is known to have SentEval's rows, and the order that decides the folds: MRPC, which
GLUE's tables were made of. SetFit's copies of CR and SUBJ are cut into a train and a test set that SentEval has not;
rotten_tomatoes has MR's sentences before SentEval's tokens; GLUE's SST-2 hides the labels of its test.
"""
