"""Tables written frame by frame into a draft."""

import polars as pl
import pytest

from storage.artifacts.manifest import Provenance
from storage.artifacts.refs import ViewsRef
from storage.artifacts.schemas import VIEWS
from storage.artifacts.store import Store

WHY = Provenance(stage_version=1, config={})


def test_table_bytes_do_not_depend_on_frame_boundaries(tmp_path):
    whole = pl.DataFrame(
        {"sentence_id": range(300_000), "method": "bt-de", "text": [f"text {n % 977}" for n in range(300_000)]},
        schema=VIEWS,
    )
    lots = [whole.slice(0, 10), whole.slice(10, 0), whole.slice(10, 199_990), whole.slice(200_000), whole.clear()]
    store, contents = Store(str(tmp_path / "store")), []
    for number, frames in enumerate((lots, [whole], [whole.clear(), whole])):
        ref = ViewsRef(key=f"{number:064x}")
        with store.draft(ref, WHY) as draft:
            assert draft.write_all(iter(frames)) == whole.height
        contents.append(store.manifest(ref).files)
    ref = ViewsRef(key="f" * 64)
    with store.draft(ref, WHY) as draft:
        draft.write(whole)
    assert contents == [store.manifest(ref).files] * 3
    assert store.manifest(ref).rows == whole.height


def test_write_all_without_frames_raises_value_error(tmp_path):
    store = Store(str(tmp_path / "store"))
    with pytest.raises(ValueError, match="no frames"), store.draft(ViewsRef(key="0" * 64), WHY) as draft:
        draft.write_all([])
