"""A mirror folder replaces the Hub, and `bsl mirror` fetches only what is missing."""

import polars as pl
import pytest
from huggingface_hub import constants

from bsl.flows.cli.main import main
from bsl.flows.recipes import recipe
from bsl.storage.errors import SourceError
from bsl.storage.sources.mirror import fill_cache
from tests.toy_sets import write_files

PAIRS = pl.DataFrame({"sentence1": ["a"] * 250, "sentence2": ["b"] * 250, "score": [1.5] * 250})


@pytest.fixture
def stand_in(tmp_path):
    """Return a folder that replaces the Hub: a dataset in the mirror's form, and one as SentEval distributes it."""
    write_files(tmp_path / "stand-in", {"CR/custrev.neg": "bad\n" * 3000, "CR/custrev.pos": "good\n" * 775})
    (tmp_path / "stand-in" / "sts17-en-de").mkdir()
    PAIRS.write_parquet(tmp_path / "stand-in" / "sts17-en-de" / "test.parquet")
    return tmp_path / "stand-in"


def test_mirror_uses_a_local_model_folder_as_the_revision_of_the_recipe(stand_in, tmp_path, capsys, caplog):
    bert = "google-bert/bert-base-uncased"
    write_files(stand_in / "models" / bert, {"config.json": "{}"})
    assert list(fill_cache(tmp_path / "made", f"model:{bert}", str(stand_in))) == [
        (str(stand_in / "models" / bert), "folder")
    ]
    assert main(["mirror", str(tmp_path / "made"), f"model:{bert}", "--mirror", str(stand_in)]) == 0
    warned = caplog.text + capsys.readouterr().err  # the first command of a process sends logs to the terminal
    assert f"is assumed to be revision {recipe('nli').encoder.revision}" in warned


@pytest.mark.parametrize("name", ["../bert", "a/..", "a/b/c", "a b", ""])
def test_model_that_no_hub_can_have_is_refused_before_a_search(stand_in, tmp_path, name):
    with pytest.raises(SourceError, match=r"expected model:<organisation>/<name> or model:<name>$"):
        next(fill_cache(tmp_path / "made", f"model:{name}", str(stand_in)))


def test_mirror_command_lists_missing_datasets_and_exits_with_1(stand_in, tmp_path, capsys):
    call = ["mirror", str(tmp_path / "made"), "sts17-en-de", "cr", "afs", "--mirror", str(stand_in)]
    assert main(call) == 1
    out, err = capsys.readouterr()
    assert f"folder   {stand_in}/sts17-en-de/test.parquet" in out
    assert f"folder   {stand_in}/CR/custrev.neg" in out
    assert "lacking  afs: " in err


def test_mirror_command_where_the_hub_does_not_answer_sends_to_another_machine(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens
    assert main(["mirror", str(tmp_path / "made"), "stsb/test"]) == 1
    advice = "Run this again later, or on a machine that reaches the Hub; fetched files are kept.\n"
    assert capsys.readouterr().err.endswith(advice)


def test_mirror_command_rejects_a_target_that_is_no_folder_and_says_if_nothing_is_needed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["mirror", "s3://bucket/mirror"]) == 2
    assert "is not a folder on this machine. Fill a local folder and copy it there" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    (tmp_path / "hub").touch()
    assert main(["mirror", "hub"]) == 2
    assert "hub is a file, expected a folder" in capsys.readouterr().err
    assert main(["mirror", "hub/below", "stsb/test"]) == 1
    assert "cannot write to hub/below: a part of the path is a file" in capsys.readouterr().err
    assert main(["mirror", "new", "recipe:tiny"]) == 0
    assert capsys.readouterr().out == "nothing to fetch: everything is in the package or a local file\n"
    assert not (tmp_path / "new").exists()
