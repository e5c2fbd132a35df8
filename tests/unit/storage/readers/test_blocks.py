"""Files as blocks of lines: compressed, packed, in other encodings, damaged."""

import gzip
import zipfile
import zlib

import pyarrow as pa
import pytest

from storage.errors import SourceError
from storage.readers.blocks import line_blocks, open_bytes
from tests.reading import texts

CONTENT = {"txt": b"one\ntwo\n", "jsonl": b'{"text": "one"}\n{"text": "two"}\n', "csv": b"text\none\ntwo\n"}
LINE = CONTENT["jsonl"]
PACKED = {
    "gzip": gzip.compress(LINE),
    "zlib": zlib.compress(LINE),
    "Zstandard": pa.compress(LINE, codec="zstd", asbytes=True),
    "zip": b"PK\x03\x04 a spreadsheet",
}


def zipped(path, *names, flag=0, method=0):
    """Write a zip archive; set bits of its members' flags, and the number of their compression."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, CONTENT["txt"])
    content = bytearray(path.read_bytes())
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the file's own header, and the directory's
        start = content.find(magic) + offset
        if names:
            content[start] |= flag
            content[start + 2] |= method
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("suffix", ["gz", "zst", "GZ", "Zst"])
@pytest.mark.parametrize("form", CONTENT)
def test_gzip_and_zstd_files_are_decompressed_by_suffix(write, report, form, suffix):
    pack = gzip.compress if suffix.lower() == "gz" else lambda content: pa.compress(content, codec="zstd", asbytes=True)
    assert texts(write(f"a.{form}.{suffix}", pack(CONTENT[form])), report) == ["one", "two"]


def test_zip_reader_ignores_macos_metadata_files(tmp_path, report):
    assert texts(zipped(tmp_path / "a.txt.zip", "a.txt", "__MACOSX/._a.txt"), report) == ["one", "two"]


@pytest.mark.parametrize(
    ("names", "changes", "why"),
    [
        (["a.txt", "b.txt"], {}, "contains 2 files, expected one. Unpack it and use the folder"),
        ([], {}, "contains 0 files, expected one"),
        (["a.txt"], {"flag": 1}, r"the zip archive cannot be read \(File 'a.txt' is encrypted, password required"),
        (["a.txt"], {"method": 97}, r"the zip archive cannot be read \(That compression method is not supported"),
    ],
)
def test_unsupported_zip_archive_raises_source_error(tmp_path, report, names, changes, why):
    with pytest.raises(SourceError, match=rf"a\.txt\.zip:? {why}"):
        texts(zipped(tmp_path / "a.txt.zip", *names, **changes), report)


@pytest.mark.parametrize("name", ["a.txt.zip", "a.txt"])
def test_open_bytes_passes_on_errors_of_the_calling_code(tmp_path, name):
    path = zipped(tmp_path / name, "a.txt")
    with pytest.raises(RuntimeError, match="of the reader"), open_bytes(path):
        raise RuntimeError("of the reader")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.txt.gz", gzip.compress(LINE * 1000)[:-20], "damaged gzip data"),
        ("a.txt.gz", b"no gzip", "damaged gzip data"),
        ("a.txt.zip", b"PK\x03\x04 and no more", "the zip archive cannot be read"),
        ("a.jsonl.gz", gzip.compress(PACKED["gzip"]), "contains gzip data"),
        ("a.txt.gz", gzip.compress(b"\0" * (96 << 20), 1), "longer than 64 MiB"),  # in bounded memory
    ],
    ids=["cut", "no gzip", "no zip", "packed twice", "bomb"],
)
def test_damaged_or_hostile_archive_raises_source_error(write, report, name, content, why):
    with pytest.raises(SourceError, match=why):
        texts(write(name, content), report)


@pytest.mark.parametrize("suffix", ["txt", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("kind", PACKED)
def test_compressed_data_with_an_uncompressed_suffix_is_rejected(write, report, kind, suffix):
    with pytest.raises(SourceError, match=rf"contains {kind}.*give its name the suffix \.gz, \.zst"):
        texts(write(f"a.{suffix}", PACKED[kind]), report)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("suffix", ["txt", "csv", "jsonl"])
def test_utf_16_and_utf_32_files_are_rejected(write, report, encoding, suffix):
    with pytest.raises(SourceError, match="Save the file as UTF-8"):
        texts(write(f"a.{suffix}", '{"text": "A cat sits on the mat."}\n'.encode(encoding)), report)


@pytest.mark.parametrize("block_bytes", [1, 3, 50, 1000])
def test_line_blocks_contain_whole_lines_and_their_line_number(write, report, block_bytes):
    content = b"".join(b"%d %s\n" % (number, b"x" * (number % 13)) for number in range(1, 60)) + b"last"
    blocks = list(line_blocks(write("a.txt", content), report, block_bytes))
    assert b"".join(block.content for block in blocks) == content
    assert all(int(block.content.split()[0]) == block.first_line for block in blocks[:-1])
    assert report.bytes_read == len(content)


def test_long_line_across_many_reads_is_a_single_block(write, report):
    """Joined again at every read, this line would be copied for minutes."""
    blocks = list(line_blocks(write("a.txt", b"x" * (8 << 20)), report, 64))
    assert [len(block.content) for block in blocks] == [8 << 20]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.parquet"])
def test_missing_file_raises_source_error(tmp_path, report, name):
    with pytest.raises(SourceError, match=rf"{tmp_path}/{name}: no such file\. Correct its path"):
        texts(str(tmp_path / name), report)
