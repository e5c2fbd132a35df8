"""The files of a folder: the same for every command, and no hidden ones."""

import os
from pathlib import Path

import fsspec
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.labels import label_source
from bsl.storage.sources.own_text import text_sources
from bsl.storage.sources.paths import listed
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.toy_sets import write_files

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
    """Yield the same files as a local folder and behind a URL, below a hidden folder."""
    place = f"{tmp_path}/.home/letters"
    files = dict.fromkeys([*HELD, *HIDDEN], TEXT)
    if request.param == "folder":
        yield write_files(Path(place), files)
        return
    fs = fsspec.filesystem("memory")
    for name, text in files.items():
        fs.pipe_file(f"{place}/{name}", text.encode())
    yield f"memory://{place}"
    fs.rm(place, recursive=True)


def below(place, files):
    assert all(file.startswith(f"{place}/") for file in files)
    return [file.removeprefix(f"{place}/") for file in files]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", ["2023/a.txt", "2023/winter/c.txt", "b.txt"]),
        (".git", [".git/x/desc.txt"]),  # named explicitly
        ("*", ["b.txt"]),
        ("**/*.txt", ["2023/a.txt", "2023/winter/c.txt", "b.txt"]),
        ("*/*.txt", ["2023/a.txt"]),
        (".d*", [".draft.txt"]),
        (".git/*/*.txt", [".git/x/desc.txt"]),
        ("2023/.o*/*", ["2023/.old/d.txt"]),
    ],
)
def test_hidden_files_are_listed_only_by_a_name_with_a_leading_dot(letters, pattern, found):
    path = f"{letters}/{pattern}"
    assert below(letters, listed(path)) == found
    assert resolve_source(SourceSpec(path=path)).files == listed(path)
    assert text_sources(ReadingConfig(), [path])[0].files == listed(path)


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


@pytest.mark.parametrize("read", [listed, label_source, lambda path: listed(path.rpartition("/")[0])])
def test_named_pipe_is_rejected_without_blocking(tmp_path, read):
    os.mkfifo(tmp_path / "text.csv")
    with pytest.raises(
        SourceError, match=r"text\.csv is a named pipe, expected a file or folder\. .*`cat .*> text\.txt`"
    ):
        read(str(tmp_path / "text.csv"))
    with pytest.raises(SourceError, match="/dev/null is a device or socket, expected a file"):
        listed("/dev/null")
