"""A folder of one's own files stands in for the Hub, and `bsl mirror` fetches nothing that it has."""

import json

import polars as pl
import pytest

from flows.cli.main import main
from flows.recipes import recipe
from storage.datasets.registry import DATASETS
from storage.errors import SourceError
from storage.filesystem.digests import file_sha256
from storage.readers.read_report import ReadReport
from storage.sources.mirror import Mirror
from storage.sources.mirror_record import name_in
from storage.sources.read import read_scored_pairs
from storage.sources.set_names import perhaps_meant
from storage.sources.sources import SourceSpec, resolve_source

COMMIT = "4" * 40
PAIRS = pl.DataFrame({"sentence1": ["a"] * 250, "sentence2": ["b"] * 250, "score": [1.5] * 250})


@pytest.fixture
def stand_in(tmp_path):
    """The Hub's part is played by a folder: one set in the mirror's form, one as its task distributes it."""
    folder = tmp_path / "stand-in"
    (folder / "sts17-en-de").mkdir(parents=True)
    PAIRS.write_parquet(folder / "sts17-en-de" / "test.parquet")
    (folder / "sts17").mkdir()
    (folder / "sts17" / "STS.input.track5.en-en.txt").write_text("A dog.\tA cat.\n" * 250)
    (folder / "sts17" / "STS.gs.track5.en-en.txt").write_text("2.4\n" * 250)
    return folder


def read(mirror, name):
    return read_scored_pairs(resolve_source(SourceSpec(dataset=name), str(mirror)), ReadReport(name))


def test_a_set_that_is_not_the_papers_is_named(stand_in, tmp_path):
    PAIRS.head(249).write_parquet(stand_in / "sts17-en-de" / "test.parquet")
    with pytest.raises(SourceError, match="249 rows, expected the 250"):
        list(Mirror(tmp_path / "made", str(stand_in)).add("sts17-en-de"))


SPELLINGS = ["mir", "./mir", "mir/", "a/../mir", "~/mir", "file://{here}/mir", "{here}/mir", "{here}/a/../mir"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("dataset", "split", "names"),
    [
        ("sts17-en-de", "test", ["sts17-en-de/test.parquet"]),
        ("mr", "all", ["MR/rt-polarity.pos", "MR/rt-polarity.neg"]),
    ],
)
def test_a_mirror_gives_the_same_keys_however_its_address_is_spelled(
    tmp_path, monkeypatch, spelling, dataset, split, names
):
    """Both a table and a set's own files count as the Hub's, of which they are copies."""
    for name in names:
        (tmp_path / "mir" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mir" / name).write_bytes(b"copied\n")
    entry = {"origin": f"someone/sets@{COMMIT}/default/{split}", "sha256": file_sha256(tmp_path / "mir" / names[0])}
    (tmp_path / "mir" / "mirror.json").write_text(json.dumps(dict.fromkeys(names, entry)))
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = resolve_source(SourceSpec(dataset=dataset, split=split), spelling.format(here=tmp_path))
    assert (len(found.files), found.digest) == (len(names), entry["origin"])


def test_a_table_of_another_revision_is_not_taken(tmp_path):
    (tmp_path / "org" / "name").mkdir(parents=True)
    table = tmp_path / "org" / "name" / "train.parquet"
    table.write_bytes(b"copied")
    entry = {"origin": f"org/name@{COMMIT}/train", "sha256": file_sha256(table)}
    (tmp_path / "mirror.json").write_text(json.dumps({"org/name/train.parquet": entry}))
    for revision in (None, COMMIT, "main"):
        spec = SourceSpec(dataset="org/name", revision=revision)
        assert resolve_source(spec, str(tmp_path)).digest == entry["origin"]
    other = SourceSpec(dataset="org/name", revision="b" * 40)
    with pytest.raises(SourceError, match=f"is of org/name@{COMMIT}, expected revision bbbb"):
        resolve_source(other, str(tmp_path))


def test_a_declared_set_of_another_commit_than_declared_is_refused(tmp_path):
    (tmp_path / "snli").mkdir()
    table = tmp_path / "snli" / "train.parquet"
    table.write_bytes(b"copied")
    entry = {"origin": f"stanfordnlp/snli@{COMMIT}/plain_text/train", "sha256": file_sha256(table)}
    (tmp_path / "mirror.json").write_text(json.dumps({"snli/train.parquet": entry}))
    with pytest.raises(SourceError, match=f"expected revision {DATASETS['snli'].revision}"):
        resolve_source(SourceSpec(dataset="snli"), str(tmp_path))
    assert resolve_source(SourceSpec(dataset="snli", revision=COMMIT), str(tmp_path)).digest == entry["origin"]


def test_a_file_outside_a_mirror_is_none_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert name_in("mir", "mir/../mirror/a.parquet") is None
    assert name_in("mir", "memory://mir/a.parquet") is None
    assert name_in("memory://mir", "memory://mirror/a.parquet") is None
    assert name_in("memory://mir/", "memory://mir/b/a.parquet") == "b/a.parquet"
    assert name_in(".", "a.parquet") == "a.parquet"


@pytest.fixture
def pinned(stand_in):
    """A mirror with a model whose commit is known."""
    model = stand_in / "models" / "someone" / "encoder"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    entry = {"origin": f"someone/encoder@{COMMIT}", "sha256": file_sha256(model / "config.json")}
    (stand_in / "mirror.json").write_text(json.dumps({"models/someone/encoder/config.json": entry}))
    return stand_in


def test_a_model_of_one_s_own_folder_is_checked(pinned, tmp_path):
    model, mirror = pinned / "models" / "someone" / "encoder", Mirror(tmp_path / "made", str(pinned))
    assert list(mirror.add("model:someone/encoder")) == [(model.as_uri(), "folder")]
    with pytest.raises(SourceError, match="expected revision 5555"):
        list(mirror.add(f"model:someone/encoder@{'5' * 40}"))
    (model / "config.json").write_text('{"changed": true}')
    with pytest.raises(SourceError, match=r"mirror.json says .*; delete"):
        list(mirror.add("model:someone/encoder"))


def test_the_command_mirrors_the_revision_that_a_recipe_pins(stand_in, tmp_path, capsys):
    bert = "google-bert/bert-base-uncased"
    (stand_in / "models" / bert).mkdir(parents=True)
    (stand_in / "models" / bert / "config.json").write_text("{}")
    digest = file_sha256(stand_in / "models" / bert / "config.json")
    entry = {"origin": f"{bert}@{COMMIT}", "sha256": digest}
    (stand_in / "mirror.json").write_text(json.dumps({f"models/{bert}/config.json": entry}))
    assert main(["mirror", str(tmp_path / "made"), f"model:{bert}", "--mirror", str(stand_in)]) == 1
    assert f"expected revision {recipe('nli').encoder.revision}" in capsys.readouterr().err
    assert main(["mirror", str(tmp_path / "made"), f"model:{bert}@{COMMIT}", "--mirror", str(stand_in)]) == 0


def test_the_command_says_what_it_could_not_have(stand_in, tmp_path, capsys):
    call = ["mirror", str(tmp_path / "made"), "sts17-en-de", "sts17-en-en", "sst5", "--mirror", str(stand_in)]
    assert main(call) == 1
    out, err = capsys.readouterr()
    assert f"folder   {stand_in}/sts17-en-de/test.parquet" in out
    assert f"folder   {stand_in}/sts17/STS.input.track5.en-en.txt" in out
    assert "lacking  sst5: " in err


def test_a_slip_in_a_set_s_name_is_noticed():
    assert perhaps_meant("stsbb/test") == " (did you mean 'stsb/test'?)"
    assert perhaps_meant("stsbb") == " (did you mean 'stsb'?)"
    for name in ("stsb/test", "stsbb/of-somebody", "facebook/xnli", "model:stsb"):
        assert perhaps_meant(name) == ""


def test_the_command_fills_folders_only(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["mirror", "s3://bucket/mirror"])
    assert "is no folder of this machine; fill a folder and copy it there" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
