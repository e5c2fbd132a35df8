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
