"""Memory that a process may use, in a container and outside."""

from bsl.models.runtime.memory import usable_bytes


def test_usable_memory_is_the_least_limit_and_at_most_the_machine(tmp_path):
    files = [tmp_path / name for name in ("max", "small", "huge", "absent")]
    for file, text in zip(files, ("max\n", "1073741824\n", "9223372036854771712\n"), strict=False):
        file.write_text(text)
    assert usable_bytes(files) == 1 << 30
    assert usable_bytes([files[0], files[2], files[3]]) == usable_bytes([]) > 1 << 30
