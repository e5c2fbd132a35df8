"""The digest of a set, which signatures contain, is that of its rows."""

import polars as pl

from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.evaluation.kind import digest_of, digests
from tests.tiny_encoder import BACK_DE, ORIGINALS

ROWS = pl.DataFrame({"sentence1": ORIGINALS, "sentence2": BACK_DE, "score": [1.0, 2.0, 3.0, 4.0]})


def test_set_digest_depends_on_pairs_not_on_file_layout_or_the_name_of_the_split(declare, tmp_path):
    site = declare("small", test=ROWS)

    def digest():
        return digest_of(resolve_scored_set(site, "small/test"))

    before, path = digest(), tmp_path / "mirror" / "small" / "test.parquet"
    figures = pl.DataFrame({"dataset": ["small"], "split": ["all"]})
    assert digests(figures, (resolve_scored_set(site, "small/test"),)) == {("small", "all"): before}
    ROWS.write_parquet(path, compression="uncompressed", row_group_size=2)
    assert digest() == before
    ROWS.with_columns(score=pl.Series([1.0, 2.0, 3.0, 4.5])).write_parquet(path)
    assert digest() != before
