"""What a user reads about a file in an encoding that nobody named."""

import subprocess

import polars as pl

from bsl.storage.readers.encodings import MOVE_OLD, remedy
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.own_text import records, text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from tests.every import every


@every(
    [
        ("cp1252", "Müßiggang ist aller Laster Anfang."),
        ("cp1252", "Il a dit «…»—et répété: déjà été"),  # four of eleven bytes in a run
        ("cp1251", "Съешь же ещё этих мягких французских булок"),
        ("koi8-r", "да, чай"),
        ("gbk", "今天天气很好"),
        ("cp1250", "kůň, ťuk"),  # a byte without a character in Windows-1252
    ]
)
def test_remedy_names_windows_1252_for_western_text_alone(encoding, text):
    found = remedy("a b.txt", text.encode(encoding))
    western = encoding == "cp1252"
    assert ("cp1252" in found) == western
    assert ("not in a Western encoding" in found) == (not western)
    assert f"iconv -f {'cp1252' if western else 'ENCODING'} -t utf-8 'a b.txt' > 'a b.utf8.txt'" in found


def test_file_of_two_encodings_is_converted_where_it_is_not_utf_8(tmp_path):
    """Regression: `--encoding cp1252` was advised, which spoils the lines of UTF-8."""
    path, other = tmp_path / "two files.csv", "schön"
    path.write_bytes("text\nMüßig\n".encode() + f"{other}\nplain\n".encode("cp1252"))
    found = remedy(str(path), other.encode("cp1252"))
    assert "--encoding" not in found
    subprocess.run(found.split("`")[1], shell=True, check=True)
    assert (tmp_path / "two files.utf8.csv").read_text(encoding="utf-8") == "text\nMüßig\nschön\nplain\n"
    path.write_bytes(f"text\n{other}\n".encode("cp1252"))
    assert "--encoding" in remedy(str(path), other.encode("cp1252"))


def test_followed_remedy_reads_each_text_of_a_folder_once(tmp_path):
    """Regression: the old file stayed in the folder, which was refused again, or read twice."""
    folder, away = tmp_path / "folder", tmp_path / "away.csv"
    folder.mkdir()
    (folder / "two.csv").write_bytes("text\nMüßig ist das.\n".encode() + "Schön ist es.\n".encode("cp1252"))
    found = remedy(str(folder / "two.csv"), "Schön".encode("cp1252"))
    subprocess.run(found.split("`")[1], shell=True, check=True)
    assert found.endswith(MOVE_OLD)
    (folder / "two.csv").rename(away)
    (source,) = text_sources(ReadingConfig(), [str(folder)])
    assert pl.concat(records(source, ReadReport("folder")))["text"].to_list() == ["Müßig ist das.", "Schön ist es."]


def test_byte_without_a_character_does_not_stop_the_conversion(tmp_path):
    """Regression: the program ended in a traceback and left an empty file."""
    path, other = tmp_path / "two.csv", "schön".encode("cp1252")
    path.write_bytes("Müßig\n".encode() + other + b"\n\x9d\n")
    subprocess.run(remedy(str(path), other).split("`")[1], shell=True, check=True)
    assert (tmp_path / "two.utf8.csv").read_text(encoding="utf-8") == "Müßig\nschön\n\N{REPLACEMENT CHARACTER}\n"


def test_packed_file_is_not_converted():
    """Regression: `iconv` was to convert the packed bytes, and an encoding to spoil unseen lines of UTF-8."""
    found = remedy("two.csv.gz", "schön".encode("cp1252"))
    assert "iconv" not in found
    assert found.endswith("Otherwise unpack the file, and use the unpacked file.")


def test_name_that_begins_with_a_dash_is_no_option():
    """Regression: `iconv -l.csv` is a call with the option `-l`."""
    assert "iconv -f cp1252 -t utf-8 ./-l.csv > -l.utf8.csv" in remedy("-l.csv", "schön".encode("cp1252"))
