"""`bsl-reproduce` on the embedded encoder, smaller than `tiny` but on its path."""

import pytest

from bsl.flows.sweep.sweep import reproduction
from bsl.models.evaluation.signature import parse_signature
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.run_context import RunContext


@pytest.mark.slow
def test_reproduction_of_tiny_lists_deviations_and_is_not_comparable(tmp_path, small, encoder):
    site = RunContext(store=str(tmp_path / "store"), device="cpu")
    ref = reproduction("tiny", 2, small, site, margin=0.7)
    store = Store(site.store)
    figures = store.scan(ref).collect()
    page = (store.fetch(ref) / "reproduction.md").read_text()
    assert page.startswith("# BSL-BERT\n\n**NOT COMPARABLE** ")
    for why in (
        f"another encoder: {encoder['model']}; the row's is google-bert/bert-base-uncased",
        "another corpus: embedded:nli-sample",
        "only a part of the corpus: limit 96 for none",
        "another translator: embedded:",
        "other training: ",
        "missing sets: sts12, ",
    ):
        assert why in page
    assert set(figures["margin"]) == {0.7}
    measured = figures.filter(dataset="stsb").row(0, named=True)
    assert (measured["published"], measured["seeds"], measured["verdict"]) == (73.74, 2, "NOT COMPARABLE")
    reports = store.refs("report")
    assert len(reports) == 2
    values = [
        store.scan(report, "scores")
        .filter(model="after BSL + in-batch negatives", dataset="stsb", split="test", metric="spearman", protocol="all")
        .collect()["value"]
        .item()
        for report in reports
    ]
    assert measured["value"] == pytest.approx(100 * sum(values) / 2)
    fields = parse_signature(measured["signature"])
    expected = {"set": "stsb/test", "by": "cosine", "pool": "mean", "len": "24", "special": "yes", "dtype": "fp32"}
    assert expected.items() <= fields.items()
    assert list(fields) == [
        "set", "metric", "protocol", "by", "data", "vectors", "pool", "len", "special", "norm", "case", "dtype",
        "prompt", "torch", "transformers", "bsl",
    ]  # fmt: skip
    assert not any("+" in fields[package] for package in ("torch", "transformers", "bsl"))
