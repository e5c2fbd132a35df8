"""A WordNet database of a few words in the format of wndb(5WN), so that the real reader can be tested anywhere."""

from pathlib import Path

SYNSETS = {
    "noun": (
        ("cat", "feline"),
        ("child", "kid", "youngster"),
        ("picture", "photo"),
        ("sofa", "couch"),
        ("a", "vitamin_A"),
        ("b", "atomic_number_5"),
        ("c", "degree_celsius"),
    ),
    "verb": (("run", "sprint"), ("eat", "devour"), ("give_up", "quit"), ("watch", "look_at")),
    "adj": (("big", "large"), ("quick", "fast")),
    "adv": (("quickly", "rapidly"),),
}
EXCEPTIONS = {"noun": "children child\n", "verb": "ate eat\nran run\nrunning run\n", "adj": "", "adv": ""}
_LETTERS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_LICENCE = "  1 This file has no licence header; two spaces mark lines that readers skip.  \n"


def write_tiny_wordnet(folder: Path) -> Path:
    """Write index, data and exception files, without lexnames as in Debian's package; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, synsets in SYNSETS.items():
        letter, data, senses = _LETTERS[part], _LICENCE, {}
        for words in synsets:
            offset = len(data)  # readers seek to this offset
            members = " ".join(f"{word} 0" for word in words)
            frames = " 01 + 02 00" if part == "verb" else ""
            data += f"{offset:08} 00 {letter} {len(words):02x} {members} 000{frames} | a gloss  \n"
            for word in words:
                senses.setdefault(word.lower(), []).append(offset)
        index = "".join(
            f"{word} {letter} {len(offsets)} 0 {len(offsets)} 0 {' '.join(f'{each:08}' for each in offsets)}  \n"
            for word, offsets in sorted(senses.items())
        )
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text(_LICENCE + index)
        (folder / f"{part}.exc").write_text(EXCEPTIONS[part])
    return folder
