"""A few questions, papers and tweets in the formats of USEB's archive and MTEB's clustering tasks."""

import json
from pathlib import Path

import polars as pl

from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS

GROUPS = [[*texts] for texts in zip(ORIGINALS, BACK_DE, BACK_FR, strict=True)]
"""Four groups of three texts with equal meaning."""


def write_useb(mirror: Path) -> Path:
    """Write the folder data-eval, as unpacked from the archive, into a mirror; return the mirror."""
    root = mirror / "data-eval"
    _write_askubuntu(root / "askubuntu")
    _write_cqadupstack(root / "cqadupstack")
    _write_scidocs(root / "scidocs")
    _write_twitterpara(root / "twitterpara")
    return mirror


def write_clusters(mirror: Path) -> Path:
    """Write the two clustering tasks, two sets each; return the mirror."""
    texts = [text for group in GROUPS for text in group]
    labels = [f"group {number}" for number, group in enumerate(GROUPS) for _ in group]
    sets = [{"sentences": texts, "labels": labels}, {"sentences": texts[::-1][:9], "labels": labels[::-1][:9]}]
    for name in ("twentynewsgroups", "stackexchange"):
        (mirror / name).mkdir(parents=True)
        pl.DataFrame(sets).write_parquet(mirror / name / "test.parquet")
    return mirror


def _write_askubuntu(folder: Path) -> None:
    folder.mkdir(parents=True)
    pool = [f"{10 * g + n}\t{text} \tbody of {text}" for g, group in enumerate(GROUPS) for n, text in enumerate(group)]
    (folder / "text_tokenized.txt").write_text("\n".join(pool) + "\n")
    lines = [
        "0\t1 2\t11 1 22 2 31 32\t3.5 1.5 9.25 1.5 0.5 0.25",
        "10\t\t1 2 11\t3 2 1",  # no similar question is annotated
        "20\t22\t12 22 1\t1 2 3",
    ]
    (folder / "test.txt").write_text("\n".join(lines) + "\n")
    (folder / "dev.txt").write_text("30\t31\t31 1 12\t1 2 3\n")


def _write_cqadupstack(folder: Path) -> None:
    folder.mkdir(parents=True)
    posts = {f"{g}{n}": f" {text}" for g, group in enumerate(GROUPS) for n, text in enumerate(group)}
    corpus = {"android": posts, "unix": {name: text for name, text in posts.items() if name[1] != "2"}}
    answers = {"android": {"00": ["01", "02"], "10": ["11"]}, "unix": {"30": ["31"], "20": ["21", "11"]}}
    (folder / "corpus.json").write_text(json.dumps(corpus))
    (folder / "retrieval_split.json").write_text(json.dumps({"valid": answers, "test": answers}))


def _write_scidocs(folder: Path) -> None:
    folder.mkdir(parents=True)
    papers = {f"p{g}{n}": {"title": text} for g, group in enumerate(GROUPS) for n, text in enumerate(group)}
    papers["untitled"] = {"title": None}
    tasks = {
        "cite": {"p00": {"p01": 1, "p11": 0, "p31": 0, "untitled": 1}, "untitled": {"p00": 1}},
        "cocite": {"p10": {"p11": 1, "p12": 1, "p00": 0}},
        "coview": {"p20": {"p21": 0, "p22": 1, "missing": 0}, "p30": {"p02": 1, "p31": 0}},
        "coread": {"p30": {"p31": 1, "p01": 0}},
    }
    (folder / "data.json").write_text(json.dumps({"corpus": papers, "valid": tasks, "test": tasks}))


def _write_twitterpara(folder: Path) -> None:
    folder.mkdir(parents=True)
    votes = [(0, 1, 5), (1, 0, 4), (2, 3, 3), (3, 2, 1), (0, 3, 0), (1, 1, 2)]
    pairs = [(GROUPS[g][0], GROUPS[h if count < 4 else g][1], count) for g, h, count in votes]
    url = [f"{one}\t{two}\t({count}, 6)\thttp://t.co/{count}" for one, two, count in pairs]
    pit = [f"10\tTopic\t{two}\t{one}\t{count}\ttags\ttags" for one, two, count in pairs[::-1]]
    (folder / "Twitter_URL_Corpus_test.txt").write_text("\n".join(url) + "\n")
    (folder / "test.data").write_text("\n".join(pit) + "\n")
    (folder / "test.label").write_text("true\t1.0\n" * len(pit))
