"""Names of models."""

import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.model_sources import check_model_name, is_made_here, resolve_model
from tests.tiny_encoder import write_tiny


def test_encoder_names_of_runs_are_not_hub_ids_unless_local(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("checkpoint/3f", "report/latest", "report/lastest", "checkpoint/flow-1"):
        assert is_made_here(name)
    (tmp_path / "checkpoint" / "mine").mkdir(parents=True)
    for name in ("checkpoint/mine", "reports/latest", "embedded:bert-mini", "someone/checkpoint"):
        assert not is_made_here(name)
    (tmp_path / "checkpoint" / "mine" / "manifest.json").touch()
    assert is_made_here("checkpoint/mine")  # the store is the current folder


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("embeded:mini-sentence", r"no such model\. Did you mean 'embedded:mini-sentence'\?"),
        ("embedding:bert-mini", r"no such model\. Did you mean 'embedded:bert-mini'\?"),
        ("a name with blanks", r"no such model\. Expected a folder, a name on the Hub \(OWNER/NAME\)"),
        ("mini-sentence", r"is an embedded model\. Write embedded:mini-sentence\."),
    ],
)
def test_name_that_no_hub_has_is_refused_with_the_nearest(name, finding, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=finding):
        check_model_name(name)
    (tmp_path / name).mkdir()
    write_tiny(tmp_path / name)
    check_model_name(name)  # a folder of that name


def test_translator_of_the_package_is_a_model():
    """Regression: `bsl run tiny` was refused, because its recipe names one."""
    check_model_name("embedded:marian-mini-en-mul")


def test_file_of_a_model_is_refused_with_the_name_of_its_folder(tmp_path):
    write_tiny(tmp_path)
    with pytest.raises(SourceError, match=rf"config\.json: is a file, .*\. Name its folder: {tmp_path}\."):
        resolve_model(str(tmp_path / "config.json"))


def test_name_without_owner_is_short_for_one_of_sentence_transformers(tmp_path):
    write_tiny(tmp_path / "models" / "sentence-transformers" / "all-Tiny-v2")
    short, full = (
        resolve_model(name, mirror=str(tmp_path)) for name in ("all-Tiny-v2", "sentence-transformers/all-Tiny-v2")
    )
    assert short == full
