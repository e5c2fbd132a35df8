"""SentEval's sets are read from an archive on the Hub and mirrored as their own files; a damaged archive is refused."""

import gzip
import io
import sys
import tarfile

import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.storage.datasets.declaration import SENTEVAL
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import HubError, SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources import scored_sets
from bsl.storage.sources.mirror import fill_cache
from bsl.storage.sources.read import read_source
from bsl.storage.sources.scored_sets import digests, read_declared_pairs, read_transfer_table
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.hub.client import offline, use
from tests.hub.repositories import parquet
from tests.hub.senteval import files_of, mrpc_rows, packed, publish_mrpc, publish_senteval, publish_sst5
from tests.toy_sets import allow_any_rows, write_files

CR = {"CR/custrev.neg": "bad\n\n", "CR/custrev.pos": "good\n"}
ROWS = [("bad", 0), ("", 0), ("good", 1)]


def publish(hub, archive, commit=SENTEVAL.revision):
    return hub.add("datasets", SENTEVAL.hub_id, {SENTEVAL.file: archive}, commit)


def table(name, split, mirror=None):
    return read_transfer_table(name, split, resolve_source(SourceSpec(dataset=name, split=split), mirror))


@pytest.fixture
def any_rows(monkeypatch):
    allow_any_rows(monkeypatch, "cr", "sts12-tok")


@pytest.mark.usefixtures("any_rows")
@pytest.mark.parametrize(
    "filtered",
    [True, pytest.param(False, marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="tarfile always filters"))],
)
def test_archive_writes_only_into_its_folder(hub, tmp_path, monkeypatch, filtered):
    if not filtered:  # before Python 3.11.4
        monkeypatch.delattr(tarfile, "data_filter")
    link, below = tarfile.TarInfo("linked"), tarfile.TarInfo("linked/outside")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    buffer = io.BytesIO(packed({**CR, "../../../../../../outside": "x"}))
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        tar.addfile(link), tar.addfile(below, io.BytesIO())
    publish(hub, buffer.getvalue())
    assert table("cr", "all").height == 3
    outside = [path for path in tmp_path.rglob("outside") if "linked" not in path.parts]
    assert outside == []


ZEROS = {"CR/custrev.neg": "\0" * (2 << 20)}
INVALID = {
    # A run leaves out the sets that the archive lacks, by name; a damaged archive ends the run.
    "another set": (packed({"MR/rt-polarity.neg": ""}), SourceError, r"contains no CR/custrev\.neg\. Put"),
    "a folder alone": (packed({"CR": None}, "w:gz"), SourceError, r"contains no CR/custrev"),
    "no archive": (b"no archive", HubError, r"senteval\.tar cannot be unpacked \(.*\. Delete .* and run again"),
    **{
        f"zeros in {form}": (
            packed(ZEROS, f"w:{form}"),
            HubError,
            r"unpacks to more than 200 times its size \(found 2,097,152 bytes from",
        )
        for form in ("gz", "bz2", "xz")
    },
}


@pytest.mark.usefixtures("any_rows")
@pytest.mark.parametrize(("archive", "kind", "line"), INVALID.values(), ids=INVALID)
def test_invalid_senteval_archive_is_rejected(hub, tmp_path, monkeypatch, archive, kind, line):
    monkeypatch.setattr("bsl.storage.readers.unpacked.FREE_BYTES", 1 << 20)
    publish(hub, archive)
    with pytest.raises(SourceError, match=line) as caught:
        table("cr", "all")
    assert type(caught.value) is kind
    assert not any(path.name == "custrev.neg" for path in tmp_path.rglob("*"))


def test_repository_without_the_archive_is_rejected(hub):
    hub.add("datasets", SENTEVAL.hub_id, {"README.md": b""}, SENTEVAL.revision)
    with pytest.raises(HubError, match=r"the repository has no such file\. Put the set's original files into"):
        table("cr", "all")


def test_senteval_archive_is_downloaded_once_and_then_read_offline(hub, monkeypatch):
    publish_senteval(hub, ["trec"])
    assert hub.requests("resolve|cdn") == []
    assert table("trec", "train").height == DATASETS["trec"].rows["train"]
    first = table("trec", "test")
    assert first.columns == ["text", "class"]
    assert len(hub.requests("GET /cdn")) == 1
    pairs = resolve_source(SourceSpec(dataset="sickr-tok"))
    assert read_declared_pairs("sickr-tok", "test", pairs).height == 4927
    hub.stop()
    offline(monkeypatch)
    assert table("trec", "test").equals(first)


def test_mrpc_from_glue_has_the_row_order_of_senteval(hub, tmp_path, monkeypatch):
    """GLUE splits its training in two; a mirror and SentEval's own files give the same rows."""
    publish_mrpc(hub)
    for split in ("train", "test"):
        expected = mrpc_rows(split).select("sentence1", "sentence2", pl.col("label").alias("class"))
        assert table("mrpc", split).equals(expected)
    assert resolve_source(SourceSpec(dataset="mrpc")).digest.endswith("a8c/mrpc/train+validation")
    folder = tmp_path / "mirror"
    assert [how for _, how in fill_cache(folder, "mrpc")] == ["written", "kept"]  # both splits are in one configuration
    expected = table("mrpc", "train")
    hub.stop()
    use(hub, folder, monkeypatch)
    offline(monkeypatch)
    assert table("mrpc", "train").equals(expected)
    assert table("mrpc", "train", write_files(tmp_path / "senteval", files_of(["mrpc"]))).equals(expected)


def test_sst5_from_setfit_has_the_rows_of_senteval(hub, tmp_path):
    publish_sst5(hub)
    write_files(tmp_path, files_of(["sst5"]))
    for split, rows in DATASETS["sst5"].rows.items():
        found = table("sst5", split)
        assert found.height == rows
        assert found.equals(table("sst5", split, str(tmp_path)))
    assert resolve_source(SourceSpec(dataset="sst5", split="dev")).digest.endswith("9a3/validation")


@pytest.mark.usefixtures("any_rows")
@pytest.mark.parametrize(("mode", "root"), [("w", "./"), ("w:gz", "./"), ("w:gz", "data/downstream/")])
def test_archive_of_the_pinned_commit_is_read_from_the_hub_and_from_a_mirror(hub, tmp_path, monkeypatch, mode, root):
    commit = publish(hub, packed(CR, mode, root))
    publish(hub, packed({"CR/custrev.neg": "other\n"}), None)
    from_the_hub = resolve_source(SourceSpec(dataset="cr"))
    assert from_the_hub.digest == f"{SENTEVAL.hub_id}@{commit}/senteval.tar/cr/all"
    assert table("cr", "all").rows() == ROWS
    folder = tmp_path / "mirror"
    assert list(fill_cache(folder, "cr")) == [(from_the_hub.digest, "written")]
    assert list(fill_cache(folder, "cr")) == [(from_the_hub.digest, "kept")]
    hub.stop()
    use(hub, folder, monkeypatch)
    offline(monkeypatch)
    copied = resolve_source(SourceSpec(dataset="cr"))
    assert copied == from_the_hub
    assert table("cr", "all").rows() == ROWS
    texts = [text for frame in read_source(copied, ReadReport("cr"), 0) for (text,) in frame.rows()]
    assert texts == [text for text, _ in ROWS]


@pytest.mark.usefixtures("any_rows")
def test_tokenised_sts_pairs_are_read_with_their_gold_scores(hub):
    folder, subsets = "STS/STS12-en-test", ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews")
    files = {f"{folder}/STS.input.{name}.txt": "a dog .\ta cat .\n" for name in subsets}
    publish(hub, packed({**files, **{f"{folder}/STS.gs.{name}.txt": "2.5\n" for name in subsets}}))
    pairs = read_declared_pairs("sts12-tok", "test", resolve_source(SourceSpec(dataset="sts12-tok")))
    assert pairs["subset"].to_list() == list(subsets)
    assert pairs["score"].to_list() == [2.5] * 5


def test_sick_test_split_is_selected_from_the_hub_copy(hub, tmp_path, monkeypatch):
    """The Hub's copy has 9,927 pairs, ten of them twice; digests identify the 4,927 pairs of the test."""
    pairs = pl.DataFrame(
        {"sentence1": [f"A kid number {row}." for row in range(9917)], "sentence2": "A boy.", "score": 3.635}
    )
    test = pairs.filter(pl.int_range(pl.len()) % 2 == 1).head(4927)
    digests(test, scored=True).to_frame().write_parquet(tmp_path / "sick_test.parquet")
    monkeypatch.setattr(scored_sets, "SICK_TEST", tmp_path / "sick_test.parquet")
    declared = DATASETS["sickr"]
    files = {"test.jsonl.gz": gzip.compress(pl.concat([pairs, test.head(10)]).write_ndjson().encode())}
    hub.add("datasets", str(declared.hub_id), files, declared.revision)
    source = resolve_source(SourceSpec(dataset="sickr"))
    found = read_declared_pairs("sickr", "test", source)
    assert found.select(test.columns).equals(test)
    assert main(["mirror", str(tmp_path / "mirror"), "sickr"]) == 0
    offline(monkeypatch)
    copied = resolve_source(SourceSpec(dataset="sickr"), str(tmp_path / "mirror"))
    assert copied.digest == source.digest
    assert read_declared_pairs("sickr", "test", copied).equals(found)
    short = write_files(tmp_path / "files", {"sickr/test.parquet": parquet(test.slice(1))})
    with pytest.raises(SourceError, match=r"sickr test has 4,926 rows, expected the 4,927 .*\. Remove this copy"):
        read_declared_pairs("sickr", "test", resolve_source(SourceSpec(dataset="sickr"), short))
