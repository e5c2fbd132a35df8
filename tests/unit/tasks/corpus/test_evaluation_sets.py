"""Scored sets are read from a mirror in their official format; a set that is not the official one is refused."""

import polars as pl
import pytest

from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import read_scored_pairs, read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source
from bsl.tasks.corpus.evaluation_sets import read_scored_set, resolve_scored_set
from bsl.tasks.evaluation.kinds import available
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import write_files

INPUT = "A dog runs.\tA dog is running.\nA man sings.\tA man eats.\tMSRvid\tMSRvid\nIt rains.\tIt snows.\n"
TASK = {
    f"STS/STS13-en-test/STS.{part}.{subset}.txt": content
    for subset in ("FNWN", "headlines", "OnWN")
    for part, content in (("input", INPUT), ("gs", "5\n\n0.4\n"))
}  # STS 2013 as distributed with SentEval
SCORES, PAIRS = (f"STS/STS13-en-test/STS.{part}.OnWN.txt" for part in ("gs", "input"))
BENCHMARK = "STS/STSBenchmark/sts-test.csv"
STSB = {BENCHMARK: 2 * 'main-captions\tMSRvid\t2012test\t0024\t2.500\tA "girl sings.\tA girl reads.\tsource\n'}
SICK = {
    "SICK/SICK_test_annotated.txt": "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    "6\tA kid.\tA boy.\t3.3\tNEUTRAL\n"
}
OFFICIAL = {
    "sts13-tok": (TASK, 3 * [("A dog runs.", "A dog is running.", 5.0), ("It rains.", "It snows.", 0.4)]),
    "stsb-tok": (STSB, 2 * [('A "girl sings.', "A girl reads.", 2.5)]),
    "sickr-tok": (SICK, [("A kid.", "A boy.", 3.3)]),
}


def source_of(mirror, name):
    return resolve_source(SourceSpec(dataset=name, split="test"), mirror)


def pairs(mirror, name):
    return read_scored_pairs(source_of(mirror, name), ReadReport(name), *DATASETS[name].score_range)


def write_set(mirror, name, table):
    (mirror / name).mkdir(exist_ok=True)
    table.write_parquet(mirror / name / "test.parquet")
    return str(mirror)


@pytest.mark.parametrize(("name", "files", "rows"), [(name, *rest) for name, rest in OFFICIAL.items()])
def test_official_files_are_read_as_pairs_without_unscored_lines_quoting_or_header(tmp_path, name, files, rows):
    mirror = write_files(tmp_path, files)
    frame = pairs(mirror, name)
    assert frame.select("sentence1", "sentence2", "score").rows() == rows
    if name == "sts13-tok":
        assert frame["subset"].unique(maintain_order=True).to_list() == ["FNWN", "headlines", "OnWN"]
        before = source_of(mirror, name).digest
        write_files(tmp_path, {SCORES: "1\n2\n4\n"})
        assert source_of(mirror, name).digest != before
    if name == "sickr-tok":
        (learnt,) = read_source(source_of(mirror, name), ReadReport(name), max_bad_share=0.0)
        assert learnt.rows() == [("A kid.", "A boy.")]


def test_tokenised_set_never_reads_the_raw_text_columns(tmp_path):
    table = pl.DataFrame({"sentence1": ["It's."], "sentence2": ["No."], "score": [2.0]})
    with pytest.raises(SourceError, match="'sentence1_tok', 'sentence2_tok' is missing"):
        pairs(write_set(tmp_path, "sts16", table), "sts16-tok")
    both = table.with_columns(sentence1_tok=pl.lit("it 's ."), sentence2_tok=pl.lit("no ."))
    assert pairs(write_set(tmp_path, "sts16", both), "sts16-tok").row(0) == ("", "it 's .", "no .", 2.0)
    assert pairs(str(tmp_path), "sts16").row(0) == ("", "It's.", "No.", 2.0)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({SCORES: "1\n2\n"}, "has 3 lines and .*STS.gs.OnWN.txt has 2"),
        ({SCORES: None}, "STS.gs.OnWN.txt: cannot be read"),
        ({SCORES: "1\n2\n7\n"}, "row 9 has the score '7', expected a number from 0 to 5"),
        ({PAIRS: "a\tb\nalone\nc\td\n"}, "line 2: 1 fields"),
        ({PAIRS: None}, r"no STS/STS13-en-test/STS\.input\.OnWN\.txt\. Copy all"),
        ({BENCHMARK: STSB[BENCHMARK] + "a\tb\n"}, "sts-test.csv, line 3: 2 fields .*, expected at least 7"),
    ],
)
def test_bad_task_file_error_names_the_file_and_line(tmp_path, files, message):
    changed = {name: content for name, content in {**TASK, **files}.items() if content is not None}
    with pytest.raises(SourceError, match=message):
        pairs(write_files(tmp_path, changed), "stsb-tok" if BENCHMARK in files else "sts13-tok")


def test_set_with_wrong_rows_or_columns_is_reported_missing(tmp_path, caplog):
    kid = pl.DataFrame({"sentence1": ["A kid."], "sentence2": ["A boy."], "score": [3.0]})
    site = RunContext(mirror=write_set(tmp_path, "sickr", pl.concat([kid] * 9927)))
    with pytest.raises(SourceError, match=r"9,927 rows, expected the 4,927 .* test pairs are then selected"):
        read_scored_set(resolve_scored_set(site, "sickr/test"))
    found = available(site, ["embedded:stsb/test", "sickr/test"])
    assert [scored.name for scored in found.embedded()] == ["stsb test"]
    assert "Remove this copy" in found.missing["sickr/test"]
    write_set(tmp_path, "sickr", kid.with_columns(score=0.5))  # a scale from 0
    with pytest.raises(SourceError, match=r"row 1 has the score '0\.5', expected a number from 1 to 5"):
        read_scored_set(resolve_scored_set(site, "sickr/test"))
    write_set(tmp_path, "sickr", pl.concat([kid] * 4927))
    assert read_scored_set(resolve_scored_set(site, "sickr/test")).height == 4927
    assert "subsets" not in caplog.text  # the task has none
    write_set(tmp_path, "sts12", kid.rename({"sentence2": "sentence_2"}))
    with pytest.raises(SourceError, match=r"sts12 test: column 'sentence2' is missing.*did you mean 'sentence_2'"):
        read_scored_set(resolve_scored_set(site, "sts12/test"))
