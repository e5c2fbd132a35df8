"""`bsl export --push-to-hub` uploads a private repository with a card; it downloads unchanged; errors are a line."""

import re

import pytest
from huggingface_hub.utils import close_session

from flows.cli.main import main
from storage.errors import HubError, SourceError
from storage.hub.repositories import Repository
from storage.hub.upload import check_repository, push
from tests.every import every
from tests.hub.client import offline
from tests.hub.repositories import files_of
from tests.tiny_encoder import write_tiny

NAME = "people/encoder"
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # a warning of the client itself


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "made"
    (made / "1_Pooling").mkdir(parents=True)
    (made / "README.md").write_text("---\nlicense: mit\n---\n# An encoder\n")
    (made / "model.safetensors").write_bytes(b"tensors" * 1000)
    (made / "1_Pooling" / "config.json").write_text("{}")
    return made


@pytest.fixture
def _token(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    close_session()


@every(["encoder", "a/b/c", "org/na--me", "org/na..me", "org/-name", "org/name.git", "ö/ä"])
def test_a_name_that_the_hub_refuses_is_refused_before_the_export(name):
    with pytest.raises(ValueError, match="expected ORG/NAME"):
        check_repository(name)


@pytest.mark.usefixtures("_token")
@pytest.mark.parametrize("public", [False, True])
def test_what_is_downloaded_is_what_was_uploaded(hub, folder, public):
    address = push(folder, NAME, public=public)
    repository = hub.repositories["models", NAME]
    assert address == f"{hub.url}/{NAME}/commit/{repository.refs['main']}"
    assert repository.private != public
    exported = Repository("model", NAME)
    listed = exported.listing(None)
    assert files_of(exported.fetch(listed, listed.files)) == files_of(folder)
    assert listed.files["model.safetensors"].lfs_sha256 is not None


def test_without_a_token_nothing_is_uploaded(hub, folder):
    with pytest.raises(
        HubError, match=rf"^{NAME}: the Hub refused the upload \(401: .*Set HF_TOKEN to a token with write access"
    ):
        push(folder, NAME, public=False)
    assert hub.repositories == {}


@pytest.mark.usefixtures("_token")
def test_each_refusal_says_what_to_do(hub, folder):
    push(folder, NAME, public=False)
    for status, remedy, target in (
        (403, "name your own organisation", NAME),
        (409, "existing ones are not overwritten", "ORG/NEW-NAME"),
    ):
        command = re.escape(f"then upload the exported folder: `hf upload {target} {folder} --private`.")
        if status == 403:
            fault = hub.fail("POST /api/repos/create", 403)
        with pytest.raises(HubError, match=rf"\({status}: .*{remedy}, {command}$"):
            push(folder, NAME, public=False)
        fault.times = 0


@pytest.mark.usefixtures("_token")
def test_a_hub_that_is_not_there_or_not_to_be_asked(hub, folder, monkeypatch):
    hub.fail("POST /api/repos/create", 503)
    with pytest.raises(
        HubError,
        match=r"the Hub returned an error \(503\)\. Wait a few minutes, then upload the exported folder: `hf upload",
    ):
        push(folder, NAME, public=False)
    hub.stop()
    close_session()
    with pytest.raises(HubError, match="the Hub does not answer"):
        push(folder, "people/other", public=False)
    offline(monkeypatch)
    with pytest.raises(SourceError, match=r"HF_HUB_OFFLINE forbids requests to the Hub\. Unset it"):
        push(folder, "people/third", public=False)


def test_a_call_that_makes_no_sense_ends_before_anything_is_made(tmp_path, capsys):
    for words, said in (
        (("--push-to-hub", "encoder"), "'encoder' has no owner, expected ORG/NAME"),
        (("--public",), "Add --push-to-hub ORG/NAME"),
    ):
        assert main(["export", "embedded:bert-mini", str(tmp_path / "out"), *words]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("_token")
def test_the_verb_uploads_what_it_exports(hub, tmp_path, capsys):
    start = str(write_tiny(tmp_path / "in"))
    assert main(["export", start, str(tmp_path / "out"), "--push-to-hub", NAME]) == 0
    exported = Repository("model", NAME)
    listed = exported.listing(None)
    assert files_of(exported.fetch(listed, listed.files)) == files_of(tmp_path / "out")
    assert f"hub:     {hub.url}/{NAME}/commit/{listed.commit}" in capsys.readouterr().out
