"""Archives on the Hub with data sets' own files."""

from __future__ import annotations

from typing import Final

from storage.declared.dataset import HubArchive

SENTEVAL: Final = HubArchive(
    hub_id="princeton-nlp/datasets-for-simcse", revision=None,
    file="senteval.tar",
    unpinned="known to begin with e145e8b, and a pin has all 40 digits; the rows of each set are counted",
)  # fmt: skip
"""SentEval's folder `data/downstream`, packed by SimCSE's authors: what most papers since 2019 were scored on.

No table of the Hub is known to have SentEval's rows in their order, which decides the folds: SetFit's copies of CR,
SUBJ and MRPC are cut into a train and a test set that SentEval has not; of GLUE's tests MRPC's alone has labels, and
its 4,076 rows of training stand there in two splits.
"""
