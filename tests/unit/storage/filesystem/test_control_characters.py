"""Control characters are shown as escapes, and every place of the command line that prints uses them."""

import ast
import json
import unicodedata
from pathlib import Path

from bsl.storage.filesystem.control_characters import visible, visible_json

ROOT = Path(__file__).parents[4]
BIDI = ("\u061c", "\u200e", "\u200f", *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
SAFE = ("printable", "show", "visible_json", "app.generate_completion", "len")


def test_every_control_and_direction_character_is_an_escape():
    controls = {chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Cs", "Zl", "Zp")}
    for letter in (controls - {"\t", "\n"}) | set(BIDI):
        assert visible(f"a{letter}b") == f"a{repr(letter)[1:-1]}b"
        assert json.loads(visible_json(json.dumps(f"a{letter}b", ensure_ascii=False))) == f"a{letter}b"


def test_text_of_any_language_is_unchanged():
    for text in ("naïve – “é”\tß\n", "漢字、かな", "עברית", "می‌خواهم", "👩‍🚀 🏴󠁧󠁢󠁥󠁮󠁧󠁿", r"\x1b"):
        assert visible(text) == text


def test_every_print_of_the_command_line_passes_printable():
    for path in (ROOT / "flows" / "cli").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "print" and call.args:
                assert is_safe(call.args[0]), f"{path}:{call.lineno}: {ast.unparse(call)}"


def is_safe(shown):
    """Return whether a printed expression is constant, or passes a function that escapes."""
    if isinstance(shown, ast.JoinedStr):
        return all(is_safe(part.value) for part in shown.values if isinstance(part, ast.FormattedValue))
    if isinstance(shown, ast.Call) and ast.unparse(shown.func) in SAFE:
        return True
    return isinstance(shown, ast.Constant) or ast.unparse(shown) == "FIRST_STEPS"
