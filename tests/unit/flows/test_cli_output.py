"""What a program that reads a verb's output meets."""

import json
import subprocess
import sys

from flows.cli.main import main


def test_json_is_all_that_stands_on_standard_output(capsys):
    for words in (["recipes"], ["assets", "ls"], ["pins"]):
        main([*words, "--json"])
        assert json.loads(capsys.readouterr().out)


def test_a_reader_that_leaves_early_is_no_error():
    command = [sys.executable, "-m", "flows.cli.main", "recipes", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_what_prefect_s_services_could_not_send_is_no_line_of_a_quiet_verb():
    """A heartbeat that was lost while the machine was busy was a line of 900 letters, and the run went on."""
    said = "; ".join(
        [
            "import logging",
            "from flows.cli.lines import be_quiet",
            "be_quiet()",
            "from prefect.logging.configuration import setup_logging",
            "setup_logging()",
            "logging.getLogger('prefect._internal.concurrency').error('failed to process item')",
            "logging.getLogger('prefect').error('failed')",
        ]
    )
    ended = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
