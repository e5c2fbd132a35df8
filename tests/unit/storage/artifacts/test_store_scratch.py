"""Scratch folders: state of a long stage, for one stage at a time; deleting it makes nothing."""

from bsl.storage.artifacts.refs import CheckpointRef

REF = CheckpointRef(key=f"{1:064x}")


def test_two_trainings_of_one_checkpoint_have_a_folder_each(store):
    """They wrote each other's job, error and speed, and the first to end deleted the other's snapshots."""
    store.drop_scratch(REF)
    assert not (store.workplace / ".scratch").exists()
    with store.own_scratch(REF) as used:  # the lock of a file, which another block or process does not get
        (used / "step-1").mkdir()
        with store.own_scratch(REF) as other:
            assert other != used
            assert list(other.iterdir()) == []
        assert not other.exists()
        store.drop_scratch(REF)  # the second has published
        assert (used / "step-1").is_dir()
    with store.own_scratch(REF) as resumed:
        assert resumed == used == store.scratch(REF)
        assert (resumed / "step-1").is_dir()
    store.drop_scratch(REF)
    assert list((store.workplace / ".scratch" / "checkpoint").iterdir()) == []
