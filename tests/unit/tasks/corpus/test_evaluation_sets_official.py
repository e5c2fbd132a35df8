"""Scored sets are read from a mirror in their official format; a set that is not the official one is refused."""

import polars as pl
import pytest

from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import read_scored_pairs, read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source
from bsl.tasks.corpus.evaluation_sets import read_scored_set, resolve_scored_set
from bsl.tasks.evaluation.kinds import UnknownSuiteError, available, names_of
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import write_files

INPUT = "A dog runs.\tA dog is running.\nA man sings.\tA man eats.\tMSRvid\tMSRvid\nIt rains.\tIt snows.\n"


def pairs(mirror, name, split="test"):
    source = resolve_source(SourceSpec(dataset=name, split=split), mirror)
    report = ReadReport(name)
    return read_scored_pairs(source, report, *DATASETS[name].score_range), report


def task(**changes):
    """Return STS 2013 as distributed with SentEval."""
    files = {}
    for subset in ("FNWN", "headlines", "OnWN"):
        files |= {f"STS.input.{subset}.txt": INPUT, f"STS.gs.{subset}.txt": "5\n\n0.4\n"}
    return {f"STS/STS13-en-test/{name}": text for name, text in (files | changes).items() if text is not None}


def test_task_files_are_read_as_pairs_without_unscored_lines(tmp_path):
    frame, report = pairs(write_files(tmp_path, task()), "sts13-tok")
    assert frame["subset"].unique(maintain_order=True).to_list() == ["FNWN", "headlines", "OnWN"]
    assert frame.row(0) == ("FNWN", "A dog runs.", "A dog is running.", 5.0)
    assert frame.row(1) == ("FNWN", "It rains.", "It snows.", 0.4)
    assert report.unlabelled == 3


def test_changed_score_file_changes_the_source_digest(tmp_path):
    mirror = write_files(tmp_path, task())
    before = resolve_source(SourceSpec(dataset="sts13-tok"), mirror).digest
    write_files(tmp_path, task(**{"STS.gs.OnWN.txt": "1\n2\n4\n"}))
    assert resolve_source(SourceSpec(dataset="sts13-tok"), mirror).digest != before


def test_stsb_file_is_read_without_quoting_or_header_row(tmp_path):
    line = 'main-captions\tMSRvid\t2012test\t0024\t2.500\tA "girl sings.\tA girl reads.\tsource\n'
    frame, _ = pairs(write_files(tmp_path, {"STS/STSBenchmark/sts-test.csv": line * 2}), "stsb-tok")
    assert frame.row(1) == ("", 'A "girl sings.', "A girl reads.", 2.5)


def test_official_sick_file_yields_scored_and_training_pairs(tmp_path):
    table = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n6\tA kid.\tA boy.\t3.3\tNEUTRAL\n"
    mirror = write_files(tmp_path, {"SICK/SICK_test_annotated.txt": table})
    frame, _ = pairs(mirror, "sickr-tok")
    assert frame.rows() == [("", "A kid.", "A boy.", 3.3)]
    source = resolve_source(SourceSpec(dataset="sickr-tok", split="test"), mirror)
    (learnt,) = read_source(source, ReadReport("sickr"), max_bad_share=0.0)
    assert learnt.rows() == [("A kid.", "A boy.")]


def test_tokenised_set_never_reads_the_raw_text_columns(tmp_path):
    table = pl.DataFrame({"sentence1": ["It's."], "sentence2": ["No."], "score": [2.0]})
    (tmp_path / "sts16").mkdir()
    table.write_parquet(tmp_path / "sts16" / "test.parquet")
    with pytest.raises(SourceError, match="'sentence1_tok', 'sentence2_tok' is missing"):
        pairs(str(tmp_path), "sts16-tok")  # never the raw text under the tokenised name
    table.with_columns(sentence1_tok=pl.lit("it 's ."), sentence2_tok=pl.lit("no .")).write_parquet(
        tmp_path / "sts16" / "test.parquet"
    )
    assert pairs(str(tmp_path), "sts16-tok")[0].row(0) == ("", "it 's .", "no .", 2.0)
    assert pairs(str(tmp_path), "sts16")[0].row(0) == ("", "It's.", "No.", 2.0)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"STS.gs.OnWN.txt": "1\n2\n"}, "has 3 lines and .*STS.gs.OnWN.txt has 2"),
        ({"STS.gs.OnWN.txt": None}, "STS.gs.OnWN.txt: cannot be read"),
        ({"STS.gs.OnWN.txt": "1\n2\n7\n"}, "row 9 has the score '7', expected a number from 0 to 5"),
        ({"STS.input.OnWN.txt": "a\tb\nalone\nc\td\n"}, "line 2: 1 fields"),
    ],
)
def test_bad_task_file_error_names_the_file_and_line(tmp_path, files, message):
    with pytest.raises(SourceError, match=message):
        pairs(write_files(tmp_path, task(**files)), "sts13-tok")


def test_missing_input_files_of_a_task_raise_an_error(tmp_path):
    lacking = {"STS.input.headlines.txt": None, "STS.input.OnWN.txt": None}
    with pytest.raises(SourceError, match=r"no STS/STS13-en-test/STS\.input\.headlines\.txt, .*OnWN\.txt\. Copy all"):
        pairs(write_files(tmp_path, task(**lacking)), "sts13-tok")


def sick(rows):
    return pl.DataFrame({"sentence1": ["A kid."] * rows, "sentence2": ["A boy."] * rows, "score": [3.0] * rows})


def test_sick_with_wrong_row_count_is_reported_missing(tmp_path):
    (tmp_path / "sickr").mkdir()
    sick(9927).write_parquet(tmp_path / "sickr" / "test.parquet")
    site = RunContext(mirror=str(tmp_path))
    with pytest.raises(SourceError, match=r"9,927 rows, expected the 4,927 .* test pairs are then selected"):
        read_scored_set(resolve_scored_set(site, "sickr/test"))
    found = available(site, ["embedded:stsb/test", "sickr/test"])
    assert [scored.name for scored in found.embedded()] == ["stsb test"]
    assert "Remove this copy" in found.missing["sickr/test"]
    sick(4927).write_parquet(tmp_path / "sickr" / "test.parquet")
    assert read_scored_set(resolve_scored_set(site, "sickr/test")).height == 4927


def test_missing_column_or_no_available_set_raises_an_error(tmp_path):
    (tmp_path / "sts12").mkdir()
    pl.DataFrame({"sentence1": ["a"], "sentence_2": ["b"], "score": [1.0]}).write_parquet(
        tmp_path / "sts12" / "test.parquet"
    )
    with pytest.raises(SourceError, match=r"sts12 test: column 'sentence2' is missing.*did you mean 'sentence_2'"):
        read_scored_set(resolve_scored_set(RunContext(mirror=str(tmp_path)), "sts12/test"))
    with pytest.raises(SourceError, match="none of the sets is available"):
        available(RunContext(mirror=str(tmp_path)), ["sts12/test", "stsb-mt/test"])


def test_suite_names_expand_to_sets_and_misspellings_raise_errors():
    assert names_of(["sts"])[-2:] == ("stsb/test", "sickr/test")
    assert names_of(["sts17", "sts17-en-en/test"]) == names_of(["sts17"])
    assert set(names_of(["all"])) > set(names_of(["sts-tok"]))
    with pytest.raises(UnknownSuiteError, match="Did you mean 'sts17'"):
        names_of(["sts_17"])
    with pytest.raises(UnknownSuiteError, match="unknown suite or set 'snli/test'"):
        names_of(["snli/test"])
