"""What a task of Dask's or Ray's holds: several short errands on workers of our own, else one."""

from tasks.site import Site
from tasks.stage.spread import handed

OWN = Site(runner="dask", workers=2)


def sizes(site: Site, count: int, *, together: bool) -> list[int]:
    some = list(handed(site, range(count), together=together))
    assert [number for one in some for number in one] == list(range(count))
    return [len(one) for one in some]


def test_own_workers_are_handed_shards_together():
    assert sizes(OWN, 100, together=True)[0] == 12


def test_folds_and_seeds_go_one_by_one():
    assert sizes(OWN, 100, together=False) == [1] * 100


def test_a_cluster_that_starts_workers_as_they_are_wanted_sees_every_shard():
    for runner in ("dask", "ray"):
        site = OWN.model_copy(update={"runner": runner, "cluster": "tcp://scheduler:8786"})
        assert sizes(site, 100, together=True) == [1] * 100
