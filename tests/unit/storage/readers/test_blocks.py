"""Files as blocks of lines: compressed, packed, in other encodings, damaged."""

import gzip
import io
import shlex
import subprocess
import zipfile
import zlib

import pyarrow as pa
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers.blocks import line_blocks, open_bytes, read_bytes
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


def packed_as(suffix, content):
    if suffix == "gz":
        return gzip.compress(content, 9)
    if suffix == "zst":
        return pa.compress(content, codec="zstd", asbytes=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", content)
    return buffer.getvalue()


@pytest.mark.parametrize("suffix", ["gz", "zst", "zip", "GZ"])
def test_file_that_unpacks_to_gigabytes_is_refused_and_the_remedy_works(tmp_path, monkeypatch, report, suffix):
    """In bounded memory, whatever the length of its lines."""
    monkeypatch.setattr("bsl.storage.readers.unpacked.FREE_BYTES", 4 << 20)
    content = b"the same sentence again and again\n" * 250_000
    path = tmp_path / f"a.txt.{suffix}"
    path.write_bytes(packed_as(suffix.lower(), content))
    with pytest.raises(SourceError, match=r"unpacks to more than 200 times its size \(found .* bytes from") as refused:
        texts(str(path), report)
    with pytest.raises(SourceError, match="unpacks to more than 200 times"):
        read_bytes(str(path))
    if suffix == "gz":
        subprocess.run(shlex.split(str(refused.value).split("`")[1]), check=True)
        assert len(texts(str(tmp_path / "a.txt"), report)) == 250_000


@pytest.mark.parametrize("suffix", ["gz", "zst", "zip"])
def test_small_or_incompressible_contents_are_read_whole(tmp_path, monkeypatch, report, suffix):
    path = tmp_path / f"a.txt.{suffix}"
    path.write_bytes(packed_as(suffix, b"yes\n" * 200_000))  # 800 kB from 1 kB
    assert len(texts(str(path), report)) == 200_000
    monkeypatch.setattr("bsl.storage.readers.unpacked.FREE_BYTES", 1 << 10)
    lines = b"".join(b"%x\n" % (number * 2_654_435_761 % (1 << 32)) for number in range(20_000))
    path.write_bytes(packed_as(suffix, lines))
    assert read_bytes(str(path)) == lines


@pytest.mark.parametrize("suffix", ["txt", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("kind", PACKED)
def test_compressed_data_with_an_uncompressed_suffix_is_rejected(write, report, kind, suffix):
    with pytest.raises(SourceError, match=rf"contains {kind}.*give its name the suffix \.gz, \.zst"):
        texts(write(f"a.{suffix}", PACKED[kind]), report)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("form", CONTENT)
def test_utf_16_and_utf_32_files_with_a_mark_are_read(write, report, encoding, form):
    content = CONTENT[form].decode().replace("one", "’один").encode(encoding)
    assert texts(write(f"a.{form}", content), report) == ["’один", "two"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("suffix", ["txt", "csv", "jsonl"])
def test_unmarked_utf_16_is_refused_by_name_and_the_remedy_works(write, report, encoding, suffix):
    path = write(f"a.{suffix}", 'text\n{"text": "A cat sits on the mat."}\n'.encode(encoding))
    with pytest.raises(SourceError, match=f"iconv -f {encoding} -t utf-8 .* name the encoding .*: {encoding}"):
        texts(path, report)
    assert b"A cat sits" in next(line_blocks(path, None, encoding=encoding)).content


def test_cut_utf_16_file_is_refused_with_its_line(write, report):
    with pytest.raises(SourceError, match=r"a\.txt, line 2: byte 0x62 has no character in utf-16.*file -i"):
        texts(write("a.txt", "a\nb".encode("utf-16")[:-1]), report)


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_named_encoding_applies_to_files_that_are_not_utf8(write, block_bytes):
    legacy = write("a.txt", "“L’été” – 5 €\nzwei\n".encode("cp1252"))
    modern = write("b.txt", "“L’été” – 5 €\nzwei\n".encode())
    for path in (legacy, modern):
        blocks = line_blocks(path, None, block_bytes, encoding="cp1252")
        assert b"".join(block.content for block in blocks).decode() == "“L’été” – 5 €\nzwei\n"


def test_byte_without_a_character_in_the_named_encoding_is_refused(write):
    path = write("a.txt", b"one\ntwo \x81\n")
    with pytest.raises(SourceError, match=r"line 2: byte 0x81 has no character in cp1252, .* by `--encoding`"):
        list(line_blocks(path, None, encoding="cp1252"))


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
