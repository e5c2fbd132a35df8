"""Score encoders on UKP ASPECT (Reimers et al., 2019); no adaptation uses its labels.

    python -m benchmarks.quality.bench_arguments UKP_ASPECT.tsv --text arguments.txt
    bsl adapt arguments.txt --encoder ENCODER
    python -m benchmarks.quality.bench_arguments UKP_ASPECT.tsv ENCODER report/KEY

The file has the columns topic, sentence_1, sentence_2 and label; it is not in the package. Scores are Spearman
× 100 of cosine and grade, over all pairs and as the mean over topics.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl

GRADES = {"DTORCD": 0, "NS": 0, "SS": 1, "HS": 2}  # different topic, no, some and high similarity


def main() -> int:
    """Write the sentences, one per line, or score encoders."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", type=Path)
    parser.add_argument("encoders", nargs="*", metavar="ENCODER", help="as of `bsl export`: folder, embedded:, report/")
    parser.add_argument("--text", type=Path, help="where the sentences are written, for `bsl adapt`")
    arguments = parser.parse_args()
    from bsl.flows.run_context import run_context_of
    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.evaluation.correlation import cosine_scores, spearman
    from bsl.tasks.embedding.encoders import encoder_folder, find_encoder

    table = pl.read_csv(arguments.pairs, separator="\t", quote_char=None)
    sides = table["sentence_1"].to_list(), table["sentence_2"].to_list()
    if arguments.text:
        arguments.text.write_text("".join(f"{text}\n" for text in dict.fromkeys([*sides[0], *sides[1]])))
    gold, topics = table["label"].replace_strict(GRADES).to_numpy(), table["topic"].to_numpy()
    site = run_context_of(None)
    for name in arguments.encoders:
        folder = encoder_folder(site.open_store(), find_encoder(site, name, None))
        loaded = SentenceEncoder.load(folder, EncoderConfig(model=name))
        scores = cosine_scores(*(loaded.encode(side) for side in sides))
        each = [spearman(scores[topics == topic], gold[topics == topic]) for topic in np.unique(topics)]
        print(f"{name}: all pairs {100 * spearman(scores, gold):.2f}, mean of topics {100 * np.mean(each):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
