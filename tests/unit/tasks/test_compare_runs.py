"""In what runs differ, field by field."""

from tasks.compare_runs import differing


def test_fields_that_differ_are_rows_and_those_that_a_run_lacks_are_dashes():
    first = {"training": {"lr": 0.001, "objective": {"name": "bsl", "momentum": 0.9}}, "sets": ["a"], "empty": {}}
    second = {"training": {"lr": 0.002, "objective": {"name": "simcse"}}, "sets": ["a"], "empty": {}}
    assert differing({"A": first, "B": second}) == [
        {"field": "training.lr", "A": "0.001", "B": "0.002"},
        {"field": "training.objective.name", "A": "bsl", "B": "simcse"},
        {"field": "training.objective.momentum", "A": "0.9", "B": "–"},
    ]
    assert differing({"A": first, "B": first}) == []
