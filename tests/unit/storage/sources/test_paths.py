"""The files of a folder: the same for every command, and no hidden ones."""

import os

import fsspec
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.labels import label_source
from bsl.storage.sources.own_text import ReadingConfig
from bsl.storage.sources.paths import listed
from bsl.storage.sources.sources import SourceSpec, resolve_source

HELD = ["b.txt", "2023/a.txt", "2023/winter/c.txt", "notes.pdf"]
HIDDEN = [
    ".draft.txt",
    ".git/x/desc.txt",
    ".venv/lib/LICENSE.txt",
    "2023/.old/d.txt",
    ".bsl/store/corpus/1/part.parquet",
]
TEXT = "A dog runs over the wide meadow.\n"


@pytest.fixture(params=["folder", "object store"])
def letters(request, tmp_path):
    """Yield the same files as a local folder and behind a URL."""
    place = str(tmp_path / ".home" / "letters") if request.param == "folder" else f"memory://{tmp_path}/.home/letters"
    fs, root = fsspec.url_to_fs(place)
    for name in [*HELD, *HIDDEN]:
        fs.pipe_file(f"{root}/{name}", TEXT.encode()) if "://" in place else _write(f"{root}/{name}", fs)
    yield place
    if "://" in place:
        fs.rm(root, recursive=True)


def _write(path, fs):
    fs.makedirs(path.rpartition("/")[0], exist_ok=True)
    fs.pipe_file(path, TEXT.encode())


def below(place, files):
    assert all(file.startswith(f"{place}/") for file in files)
    return [file.removeprefix(f"{place}/") for file in files]


def test_folder_listing_recurses_and_skips_hidden_files(letters):
    """Also if a parent folder is hidden."""
    assert below(letters, listed(letters)) == ["2023/a.txt", "2023/winter/c.txt", "b.txt"]
    assert listed(f"{letters}/") == listed(letters)


def test_reading_config_and_source_spec_list_the_same_files(letters):
    (adapted,) = ReadingConfig().sources([letters])
    assert adapted.files == resolve_source(SourceSpec(path=letters)).files == listed(letters)


def test_hidden_folder_is_listed_when_named_explicitly(letters):
    assert below(letters, listed(f"{letters}/.git")) == [".git/x/desc.txt"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["b.txt"]),
        ("**/*.txt", ["2023/a.txt", "2023/winter/c.txt", "b.txt"]),
        ("*/*.txt", ["2023/a.txt"]),
        (".d*", [".draft.txt"]),
        (".git/*/*.txt", [".git/x/desc.txt"]),
        ("2023/.o*/*", ["2023/.old/d.txt"]),
    ],
)
def test_glob_matches_hidden_files_only_with_a_leading_dot(letters, pattern, found):
    assert below(letters, listed(f"{letters}/{pattern}")) == found


def test_folder_with_only_hidden_files_raises_source_error(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "desc.txt").write_text(TEXT)
    for find in (listed, lambda path: ReadingConfig().sources([path])):
        with pytest.raises(SourceError, match=r"contains no files\. Correct the path"):
            find(str(tmp_path))
    (tmp_path / "letters.docx").write_text(TEXT)
    with pytest.raises(SourceError, match="contains 1 files, none in a known format"):
        listed(str(tmp_path))


def test_symlink_to_a_parent_folder_is_not_followed(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(TEXT)
    (tmp_path / "in" / "round").symlink_to(tmp_path)
    assert listed(str(tmp_path)) == (f"{tmp_path}/in/a.txt",)


def test_non_utf8_file_name_raises_source_error(tmp_path):
    (tmp_path / "fine.txt").write_text(TEXT)
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text(TEXT)
    with pytest.raises(SourceError, match=r"caf\\udce9.txt': its name is not UTF-8, .* Rename it"):
        listed(str(tmp_path))


@pytest.mark.parametrize("named", ["the pipe", "its folder", "as labels"])
def test_named_pipe_is_rejected_without_blocking(tmp_path, named):
    pipe = tmp_path / "text.csv"
    os.mkfifo(pipe)
    read = {
        "the pipe": lambda: listed(str(pipe)),
        "its folder": lambda: listed(str(tmp_path)),
        "as labels": lambda: label_source(str(pipe)),
    }[named]
    with pytest.raises(
        SourceError, match=r"text\.csv is a named pipe, expected a file or folder\. .*`cat .*> text\.txt`"
    ):
        read()


def test_device_file_is_rejected():
    with pytest.raises(SourceError, match="/dev/null is a device or socket, expected a file"):
        listed("/dev/null")
