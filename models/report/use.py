"""The section of a page that puts its encoder to use."""

from __future__ import annotations

from models.report.html import Code, Part, Prose


def use_part(checkpoint: str) -> Part:
    """Commands to be copied.

    Args:
        checkpoint: `checkpoint/<beginning of key>`; empty where nothing was trained, which leaves the section empty.
    """
    if not checkpoint:
        return Part("Use the encoder")
    commands = (
        f'bsl search {checkpoint} sentences.txt "dogs in winter"',
        f"bsl pairs {checkpoint} sentences.txt --above 0.9",
        f"bsl embed {checkpoint} sentences.txt vectors.parquet",
    )
    folder = f"Its folder in the store, {checkpoint}…/encoder, opens with SentenceTransformer(path), too."
    return Part("Use the encoder", [Code("\n".join(commands)), Prose(folder, note=True)])
