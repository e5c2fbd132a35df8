"""Tables written frame by frame into a draft."""

import polars as pl
import pytest
from pydantic import Field

from bsl.storage.artifacts.manifest import Figures, Provenance
from bsl.storage.artifacts.refs import ViewsRef
from bsl.storage.artifacts.schemas import VIEWS
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import CorruptArtifactError

WHY = Provenance(stage_version=1, config={})


def test_table_bytes_do_not_depend_on_frame_boundaries(tmp_path):
    texts = [f"text {n % 977}" for n in range(300_000)]
    whole = pl.DataFrame({"sentence_id": range(300_000), "method": "bt-de", "text": texts}, schema=VIEWS)
    lots = [whole.slice(0, 10), whole.slice(10, 0), whole.slice(10, 199_990), whole.slice(200_000), whole.clear()]
    store, contents = Store(str(tmp_path / "store")), []
    for number, frames in enumerate((lots, [whole], [whole.clear(), whole], None)):
        ref = ViewsRef(key=f"{number:064x}")
        with store.draft(ref, WHY) as draft:
            assert frames is None or draft.write_all(iter(frames)) == whole.height
            if frames is None:
                draft.write(whole)
        contents.append(store.manifest(ref).files)
    assert contents == [contents[0]] * 4
    assert store.manifest(ref).rows == whole.height


class Counts(Figures):
    rows: int = 0
    left_out: int = Field(0, alias="left out")


class Texts(Figures):
    rows: str


def test_figures_are_read_as_the_model_of_their_stage(tmp_path):
    store, ref = Store(str(tmp_path / "store")), ViewsRef(key="0" * 64)
    with store.draft(ref, WHY) as draft:
        draft.write(pl.DataFrame(schema=VIEWS))
        draft.note({"rows": 3, "other": "text"})
    assert store.manifest(ref).figures_as(Counts) == Counts(rows=3)
    with store.draft(ViewsRef(key="1" * 64), WHY) as draft:
        draft.note(Counts(left_out=2))
        assert draft.figures == {"left out": 2}
        draft.write(pl.DataFrame(schema=VIEWS))
    with pytest.raises(CorruptArtifactError, match=r"views/0+: figures are no Texts \(rows: .*\)\. Delete"):
        store.manifest(ref).figures_as(Texts)
