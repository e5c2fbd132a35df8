from bsl.flows.checked_flow import run_prefix


def test_two_runs_that_the_scheduler_planned_together_have_different_prefixes(monkeypatch):
    planned = (
        "01a22cd2-6d25-75cc-b29a-dfc7c36235fa",
        "01a22cd2-6d25-75cc-a3c0-85d39432fe6e",  # as of one of four schedules with 100 runs
        "01a22cd2-6d25-714b-a3c0-85d39432fe6e",
    )
    started = "bcd5a57d-9d3f-4249-8637-ef43fce8cdbe"
    prefixes = []
    for run in (*planned, started):
        monkeypatch.setenv("PREFECT__RUNTIME__FLOW_RUN__ID", run)
        prefixes.append(run_prefix())
        assert run.startswith(prefixes[-1])
    assert len(set(prefixes)) == 4
    assert prefixes[-1] == "bcd5a57d"
