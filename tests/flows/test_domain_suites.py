"""`bsl evaluate` on USEB's and MTEB's own files: the page has their tables, and each missing set names its download."""

from flows.cli.main import main
from tests.domain_files import write_clusters, write_useb
from tests.tiny_encoder import write_tiny


def test_evaluate_prints_domain_suite_tables_and_missing_sets(tmp_path, capsys):
    mirror = write_clusters(write_useb(tmp_path / "mirror"))
    (mirror / "data-eval" / "scidocs" / "data.json").unlink()
    tiny = str(write_tiny(tmp_path / "a" / "tiny"))  # a short name, so that no table cell wraps
    call = [
        "evaluate",
        "embedded:bert-mini",
        tiny,
        "--max-length",
        "24",
        "--suite",
        "useb",
        "clustering",
        "--device",
        "cpu",
    ]
    assert main([*call, "--mirror", str(mirror), "--store", str(tmp_path / "store")]) == 0
    out = capsys.readouterr().out
    assert "average precision, useb" in out
    assert "v-measure, mteb" in out
    assert "missing: scidocs: " in out
    assert "Paired differences × 100" in out
    assert "cqadupstack test, average precision" in out
    assert "data-eval.zip and unpack it into the mirror" in out
