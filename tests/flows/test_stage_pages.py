"""The Prefect UI shows one page per artifact of a run, in the pipeline's order, linked, escaped, rounded."""

import re

import polars as pl
import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from pydantic import BaseModel, ConfigDict

from bsl.storage.artifacts.refs import CorpusRef, PairsRef
from bsl.tasks.rendering.blocks import Charts, Prose, Table
from bsl.tasks.rendering.svg import Chart
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.stage.ui import show

CORPUS, PAIRS = "told-recipe-1-corpus-told-corpus-KEY", "told-recipe-3-pairs-told-pairs-KEY"
HOSTILE = "# <script>alert(1)</script> | ![x](y)"


class Content(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    text: str


@stage(ref=CorpusRef, version=1)
def told_corpus(context: StageContext, content: Content) -> None:
    """Read a corpus.

    With more to say.
    """
    ids = pl.Series("sentence_id", [1, 2], dtype=pl.UInt64)
    frame = pl.DataFrame([ids]).with_columns(text=pl.lit(content.text), source=pl.lit("t"), lang=pl.lit("en"))
    context.draft.write(frame)
    show(Table.of("A sample", [{"text": content.text, "share": 0.5862006127283527, "n": 14908}]), Prose("Lengths"))


@stage(ref=PairsRef, version=1)
def told_pairs(context: StageContext, corpus: CorpusRef) -> None:
    """Pair it."""
    empty = pl.DataFrame(
        schema={
            "pair_id": pl.UInt64, "sentence_id": pl.UInt64, "text_1": pl.String, "text_2": pl.String,
            "lang_1": pl.String, "lang_2": pl.String, "source": pl.String, "label": pl.Int8, "score": pl.Float32,
            "group": pl.UInt64,
        }
    )  # fmt: skip
    context.draft.write(empty)
    show(Charts([Chart("curve", "A curve", "<svg></svg>")]), Prose("The page: `file:///a b/report.html`"))


@flow(name="bsl-pipeline")
def told(site: RunContext, recipe_name: str) -> PairsRef:
    return told_pairs(site, told_corpus(site, Content(text=HOSTILE)))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    site = RunContext(store=str(tmp_path_factory.mktemp("pages") / "store"))
    told(site, "Told_Recipe")
    with get_client(sync_client=True) as client:
        wanted = ArtifactFilter(key=ArtifactFilterKey(like_="told-recipe-%"))
        found = client.read_artifacts(artifact_filter=wanted)
    keys = "|".join(ref.key[:6] for ref in site.open_store().refs())
    return {re.sub(keys, "KEY", artifact.key): artifact for artifact in found}


def test_ui_artifact_keys_follow_the_pipeline_order(pages):
    assert sorted(pages) == [CORPUS, PAIRS, f"{PAIRS}-curve"]


def test_stage_page_has_title_docstring_and_escaped_text(pages):
    text = pages[CORPUS].data
    assert text.startswith("# corpus, told corpus · told-recipe\n\nRead a corpus.\n\nA sample:\n\n")
    assert "2 rows of corpus" in text
    assert "| 0.5862 | 14,908 |" in text
    assert "\\<script\\>" in text
    assert "<script>" not in text
    assert "\n\nLengths\n\n" in text
    assert "![x](y)" not in text


def test_stage_page_links_to_inputs_and_report(pages):
    text, corpus = pages[PAIRS].data, pages[CORPUS].key
    assert f"Made from [{corpus}](/artifacts/key/{corpus})" in text
    assert "Leads to [told-recipe-9-report](/artifacts/key/told-recipe-9-report)" in text
    assert "The page: `file:///a b/report.html`" in text
    assert pages[f"{PAIRS}-curve"].data.startswith("data:image/svg+xml;base64,")
