"""What a user reads about a file in an encoding that nobody named."""

from bsl.storage.readers.encodings import remedy
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
