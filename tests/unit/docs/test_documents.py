"""Commands, links and columns in the documents are correct."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import yaml
from cyclopts import CycloptsError

from bsl.flows.cli.main import main, parsed, refusal
from bsl.flows.recipes import RECIPES
from bsl.flows.recipes.published_rows import row_of
from bsl.flows.sweep.studies import OWN, STUDIES
from bsl.storage.artifacts.schemas import TABLES, tables_of
from docs.build import ROOT, assemble
from docs.chart import CHART, MEMORY, chart, costs, marks, memory_chart
from docs.kinds import KINDS, STORE, Kind
from tests.documents import commands, mentions

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
FILE = re.compile(r"\b(?:storage|models|tasks|flows|bsl|tests|docs|docker)(?:/[a-z_-]+)+\.(?:py|md|csv|json)")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")

TOLD = [page for page in PAGES if page.name != "CHANGELOG.md"]  # the changelog describes former versions
MENTIONED = [words for page in TOLD for words in mentions(page)]
QUICK = sorted(
    {
        tuple(words)
        for words in [*MENTIONED, *(told[1:] for page in TOLD for told in commands(page) if told[0] == "bsl")]
        if words[0] == "recipes" or words[1:] == ["ls"] or words == ["run", "tiny", "--dry-run"]
    }
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assemble(folder)
    return folder


def written(verb: str = "") -> Iterator[list[str]]:
    for page in PAGES:
        for words in commands(page):
            if words[:1] == ["bsl"] and words[1:2] == ([verb] if verb else words[1:2]):
                yield words[1:]


@cache
def answer(*words: str) -> tuple[str, str]:
    """Return the output of a `bsl` call and the reason of its refusal, without running anything else than --help."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            command, bound = parsed(words)
            if "--help" in words:
                command(*bound.args, **bound.kwargs)
        except CycloptsError as error:
            return printed.getvalue(), refusal(error)
    return printed.getvalue(), ""


def test_commands_in_blocks_and_prose_are_accepted_by_bsl() -> None:
    """Prose may omit required arguments, such as the recipe; the words it has must be right."""
    told = list(written())
    assert min(len(told), len(MENTIONED)) > 30
    for words in (*told, *MENTIONED):
        _, refused = answer(*words)
        lacks = words not in told and ("requires an argument" in refused or "expected an action" in refused)
        assert not refused or lacks, f"bsl {shlex.join(words)}: {refused}"
        options = [word for word in words if word.startswith("--") and word != "--help"] if lacks else []
        known, _ = answer(*(word for word in words[:2] if word not in options), "--help") if options else ("", "")
        assert all(option in known for option in options), f"bsl {shlex.join(words)}"


@pytest.mark.parametrize("words", QUICK, ids=shlex.join)
def test_read_only_commands_run_on_an_empty_store(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    assert main(words) == 0
    assert capsys.readouterr().out


def test_recipes_rows_and_studies_in_commands_exist() -> None:
    assert {words[1] for words in written("run")} | {words[1] for words in written("doctor")} <= {*RECIPES, "RECIPE"}
    assert all(row_of(words[1]) for words in written("reproduce"))
    assert {words[1] for words in written("sweep")} <= {*STUDIES, OWN, *RECIPES, "RECIPE"}


def test_documented_deployments_and_make_targets_exist() -> None:
    told = [words for page in PAGES for words in commands(page)]
    deployments = {entry["name"] for entry in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]}
    named = {
        words[words.index("--name") + 1] for words in told if words[:2] == ["prefect", "deploy"] and "--name" in words
    }
    run = {words[3] for words in told if words[:3] == ["prefect", "deployment", "run"]}
    assert run
    assert named <= deployments
    assert {name.partition("/")[2] for name in run} <= deployments
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{words[1]}: " in makefile for words in told if words[:1] == ["make"])


def test_documented_server_does_not_log_into_a_pipe_that_closes() -> None:
    """As the server of Prefect's `--background` does: rich ends it at the first line that it cannot write."""
    servers = [words for page in TOLD for words in commands(page) if "server start" in " ".join(words)]
    assert servers
    assert not any("--background" in words for words in servers)


def test_every_relative_link_target_exists(site: Path) -> None:
    pages = sorted(site.rglob("*.md"))
    assert len(pages) > len(RECIPES) + len(KINDS)
    for page in pages:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            inside = "://" not in target and not target.startswith("mailto:")
            assert not inside or (page.parent / target).exists(), f"{page.relative_to(site)} links to {target}"


def test_files_that_documents_for_contributors_name_exist() -> None:
    for page in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        named = FILE.findall((ROOT / page).read_text(encoding="utf-8"))
        assert named
        assert [name for name in named if not (ROOT / name).exists()] == []


def test_charts_show_the_values_of_their_tables() -> None:
    readme, benchmarks = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "BENCHMARKS.md"))
    shown = list(marks(readme))
    assert len(shown) == 4
    assert all(f" {mark.value:.2f} [{mark.low}, {mark.high}] |" in readme for mark in shown[:-1])
    sizes, steps = costs(benchmarks)
    assert sizes == [1_000_000, 5_000_000, 20_000_000]
    assert all(len(line) == len(sizes) for lines in steps.values() for line in lines)
    for drawn, file in ((chart(readme), CHART), (memory_chart(benchmarks), MEMORY)):
        label = re.search('aria-label="[^"]*"', drawn)
        assert label
        assert label[0] in file.read_text(encoding="utf-8"), "run `python -m docs.chart`"


def test_every_recipe_has_its_page(site: Path) -> None:
    assert {path.stem for path in (site / "recipes").iterdir()} == {*RECIPES, "index"}
    page = (site / "recipes" / "nli-released.md").read_text()
    assert "| 67.83 |" in page, "the printed row"
    assert "objective.k 10 for 8" in page, "and what is done otherwise"


def test_every_table_is_documented_with_a_kind() -> None:
    kinds = {kind.name: kind for kind in KINDS}
    assert {table for kind in KINDS for table in kind.tables} | {"sparse_embeddings"} == set(TABLES)
    for name, kind in kinds.items():
        assert set(kind.tables[:1]) <= {*tables_of(name), *kind.tables}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.tables], ids=lambda kind: kind.name)
def test_polars_snippet_of_each_kind_reads_its_table(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    depth = "translator/key" if kind.name == "translations" else "key"
    folder = Path(STORE) / kind.name / depth
    folder.mkdir(parents=True)
    schema = {
        name: pl.Array(pl.Float32, 4) if dtype == pl.Array else dtype for name, dtype in TABLES[kind.tables[0]].items()
    }
    pl.DataFrame({name: [None] for name in schema}, schema=schema).write_parquet(
        folder / f"{kind.tables[0]}-00000.parquet"
    )
    exec(kind.snippet, {})
    assert "shape:" in capsys.readouterr().out
