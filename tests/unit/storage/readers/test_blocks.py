"""Files as blocks of lines: compressed, packed, in other encodings, damaged."""

import bz2
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

CONTENT = {"txt": "’один\ntwo\n", "jsonl": '{"text": "’один"}\n{"text": "two"}\n', "csv": "text\n’один\ntwo\n"}
LINE = b'{"text": "one"}\n{"text": "two"}\n'


def zipped(content=b"one\ntwo\n", names=("a.txt",), flag=0, method=0):
    """Return a zip archive; set bits of its members' flags, and the number of their compression."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED if flag or method else zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    packed = bytearray(buffer.getvalue())
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the file's own header, and the directory's
        if names:
            packed[packed.find(magic) + offset] |= flag
            packed[packed.find(magic) + offset + 2] |= method
    return bytes(packed)


PACK = {
    "gz": gzip.compress,
    "zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
    "zip": zipped,
    "GZ": gzip.compress,
}
READ = {
    "a.txt.GZ": PACK["gz"](CONTENT["txt"].encode()),
    "a.csv.gz": PACK["gz"](CONTENT["csv"].encode()),
    "a.jsonl.zst": PACK["zst"](CONTENT["jsonl"].encode()),
    "a.csv.Zst": PACK["zst"](CONTENT["csv"].encode()),
    "a.txt.zip": zipped(CONTENT["txt"].encode(), ["a.txt", "__MACOSX/._a.txt"]),
    "utf-16.csv": CONTENT["csv"].encode("utf-16"),  # with a byte order mark
    "utf-32.jsonl": CONTENT["jsonl"].encode("utf-32"),
}


@pytest.mark.parametrize("name", READ)
def test_packed_or_marked_file_is_read(write, report, name):
    assert texts(write(name, READ[name]), report) == ["’один", "two"]


REFUSED = [
    ("a.txt.zip", zipped(names=("a.txt", "b.txt")), "contains 2 files, expected one. Unpack it and use the folder"),
    ("a.txt.zip", zipped(names=()), "contains 0 files, expected one"),
    ("a.txt.zip", zipped(flag=1), r"the zip archive cannot be read \(File 'a.txt' is encrypted, password required"),
    ("a.txt.zip", zipped(method=97), r"the zip archive cannot be read \(That compression method is not supported"),
    ("a.txt.zip", b"PK\x03\x04 and no more", "the zip archive cannot be read"),
    ("a.txt.gz", gzip.compress(LINE * 1000)[:-20], "damaged gzip data"),
    ("a.txt.gz", b"no gzip", r"damaged gzip data.*if it is not compressed, remove \.gz from its name"),
    ("a.txt.zst", b"no Zstandard", r"cannot be read.*if it is not compressed, remove \.zst from its name"),
    ("a.txt.zip", b"no zip", r"cannot be read.*Unpack it.*if it is not compressed, remove \.zip from its name"),
    ("a.txt.gz", gzip.compress(b"\0" * (96 << 20), 1), "longer than 64 MiB"),  # in bounded memory
    ("a.txt", gzip.compress(LINE), r"contains gzip.*, add \.gz to its name"),
    ("a.jsonl", zlib.compress(LINE), "contains zlib"),
    ("a.tsv", PACK["zst"](LINE), "contains Zstandard"),
    ("a.csv", b"PK\x03\x04 a spreadsheet", "contains zip, spreadsheet or Word.*Save a spreadsheet as"),
    ("a.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), r"contains old Excel or Word data.* as \.csv"),
    ("a.csv", bz2.compress(LINE), "contains bzip2 data, expected text. Unpack it"),
    ("a.csv", bz2.compress(LINE, 1), "contains bzip2 data"),
    ("a.txt", b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", r"contains PDF data, expected text\. Save its text as \.txt"),
    ("a.txt", b"{\\rtf1\\ansi one\\par\n}", "contains RTF data"),
    ("a.csv", b"SQLite format 3\0" + bytes(500), r"contains SQLite data.* as \.csv"),
    ("a.csv.gz", gzip.compress(b"PAR1 a table"), r"contains Parquet.*Unpack it, if .*its suffix is \.parquet"),
    ("a.jsonl", b"ARROW1\0\0 a table", r"contains Arrow data, expected text\. .*rename it: its suffix is \.arrow"),
    ("a.txt", "a\nb".encode("utf-16")[:-1], r"a\.txt, line 2: byte 0x62 has no character in utf-16.*file -i"),
]  # fmt: skip


def test_text_about_arrow_is_no_table(write, report):
    """Regression: a text that begins with the word was refused."""
    (block,) = line_blocks(write("a.txt", b"ARROW1 was a ship\n"), report)
    assert block.content == b"ARROW1 was a ship\n"


@pytest.mark.parametrize(("name", "content", "why"), REFUSED, ids=[f"{name}-{why}" for name, _, why in REFUSED])
def test_damaged_or_unsupported_file_raises_source_error(write, report, name, content, why):
    with pytest.raises(SourceError, match=why):
        texts(write(name, content), report)


@pytest.mark.parametrize("name", ["a.txt", "a.parquet"])
def test_missing_file_raises_source_error(tmp_path, report, name):
    with pytest.raises(SourceError, match=rf"{tmp_path}/{name}: no such file\. Correct its path"):
        texts(str(tmp_path / name), report)


@pytest.mark.parametrize("name", ["a.txt.zip", "a.txt"])
def test_open_bytes_passes_on_errors_of_the_calling_code(write, name):
    with pytest.raises(RuntimeError, match="of the reader"), open_bytes(write(name, zipped())):
        raise RuntimeError("of the reader")


@pytest.mark.parametrize("suffix", PACK)
def test_file_that_unpacks_to_gigabytes_is_refused_and_the_remedy_works(write, tmp_path, monkeypatch, report, suffix):
    """In bounded memory, whatever the length of its lines."""
    monkeypatch.setattr("bsl.storage.readers.unpacked.FREE_BYTES", 4 << 20)
    path = write(f"a.txt.{suffix}", PACK[suffix](b"the same sentence again and again\n" * 250_000))
    with pytest.raises(SourceError, match=r"unpacks to more than 200 times its size \(found .* bytes from") as refused:
        texts(path, report)
    with pytest.raises(SourceError, match="unpacks to more than 200 times"):
        read_bytes(path)
    if suffix == "gz":
        subprocess.run(shlex.split(str(refused.value).split("`")[1]), check=True)
        assert len(texts(str(tmp_path / "a.txt"), report)) == 250_000


@pytest.mark.parametrize("suffix", ["gz", "zst", "zip"])
def test_small_or_incompressible_contents_are_read_whole(write, monkeypatch, report, suffix):
    path = write(f"a.txt.{suffix}", PACK[suffix](b"yes\n" * 200_000))  # 800 kB from 1 kB
    assert len(texts(path, report)) == 200_000
    monkeypatch.setattr("bsl.storage.readers.unpacked.FREE_BYTES", 1 << 10)
    lines = b"".join(b"%x\n" % (number * 2_654_435_761 % (1 << 32)) for number in range(20_000))
    assert read_bytes(write(f"a.txt.{suffix}", PACK[suffix](lines))) == lines


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_unmarked_utf_16_is_refused_by_name_and_the_remedy_works(write, report, encoding):
    path = write("a.jsonl", 'text\n{"text": "A cat sits on the mat."}\n'.encode(encoding))
    with pytest.raises(SourceError, match=f"iconv -f {encoding} -t utf-8 .* name the encoding .*: {encoding}"):
        texts(path, report)
    assert b"A cat sits" in next(line_blocks(path, None, encoding=encoding)).content


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_named_encoding_applies_to_files_that_are_not_utf8(write, block_bytes):
    text = "“L’été” – 5 €\nzwei\n"
    for encoding in ("cp1252", "utf-8"):
        blocks = line_blocks(write("a.txt", text.encode(encoding)), None, block_bytes, encoding="cp1252")
        assert b"".join(block.content for block in blocks).decode() == text
    with pytest.raises(SourceError, match=r"line 2: byte 0x81 has no character in cp1252, .* by `--encoding`"):
        list(line_blocks(write("a.txt", b"one\ntwo \x81\n"), None, block_bytes, encoding="cp1252"))


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
