"""`bsl export --push-to-hub` uploads a private repository with a card; it downloads unchanged; errors are a line."""

import re

import pytest
from huggingface_hub.utils import close_session

from bsl.flows.cli.main import main
from bsl.storage.errors import HubError, SourceError
from bsl.storage.hub.repositories import HubCommit
from bsl.storage.hub.upload import check_repository, push
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
def test_check_repository_rejects_invalid_names(name):
    with pytest.raises(ValueError, match="expected ORG/NAME"):
        check_repository(name)


@pytest.mark.usefixtures("_token")
@pytest.mark.parametrize("public", [False, True])
def test_pushed_model_downloads_unchanged(hub, folder, public):
    address = push(folder, NAME, public=public)
    repository = hub.repositories["models", NAME]
    assert address == f"{hub.url}/{NAME}/commit/{repository.refs['main']}"
    assert repository.private != public
    exported = HubCommit(kind="model", name=NAME, commit=repository.refs["main"])
    assert files_of(exported.fetch(exported.files())) == files_of(folder)
    assert exported.files()["model.safetensors"].lfs_sha256 is not None


def test_push_without_a_token_uploads_nothing(hub, folder):
    with pytest.raises(
        HubError, match=rf"^{NAME}: the Hub refused the upload \(401: .*Set HF_TOKEN to a token with write access"
    ):
        push(folder, NAME, public=False)
    assert hub.repositories == {}


@pytest.mark.usefixtures("_token")
def test_push_error_names_a_remedy_for_each_status(hub, folder):
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
def test_push_to_an_unavailable_hub_raises_an_error(hub, folder, monkeypatch):
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


def test_invalid_push_options_fail_before_the_export(tmp_path, capsys):
    for words, said in (
        (("--push-to-hub", "encoder"), "'encoder' has no owner, expected ORG/NAME"),
        (("--public",), "Add --push-to-hub ORG/NAME"),
    ):
        assert main(["export", "embedded:bert-mini", str(tmp_path / "out"), *words]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("_token")
def test_export_command_pushes_the_exported_folder_to_the_hub(hub, tmp_path, capsys):
    start = str(write_tiny(tmp_path / "in"))
    assert main(["export", start, str(tmp_path / "out"), "--push-to-hub", NAME]) == 0
    exported = HubCommit(kind="model", name=NAME, commit=hub.repositories["models", NAME].refs["main"])
    assert files_of(exported.fetch(exported.files())) == files_of(tmp_path / "out")
    assert f"hub:     {hub.url}/{NAME}/commit/{exported.commit}" in capsys.readouterr().out
