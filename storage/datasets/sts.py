"""Declare the STS datasets of the papers' tables, raw and tokenised as in SentEval."""

from __future__ import annotations

from typing import Final

from bsl.storage.datasets.declaration import SENTEVAL, TRAIN_DEV_TEST, Dataset

_STS = "Agirre et al., SemEval-{year} task on semantic textual similarity."
# STS 2017 and its extension (Reimers and Gurevych, 2020): track → heading
_TRACKS: Final = {name: name.upper() for name in ("en-en", "es-es", "ar-ar", "en-ar", "en-de", "en-tr")} | {
    "es-en": "EN-ES",
    "fr-en": "EN-FR",
}
_OTHER_TRACKS: Final = ("it-en", "nl-en", "ko-ko")  # without figures in BSL's paper
_STS_LICENCE = "scores CC BY-SA 4.0; each text part has terms of its own"
_SUBSETS: Final = {  # of the yearly tasks; SMT of 2013 is not free, and no paper includes it
    2012: ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    2013: ("FNWN", "headlines", "OnWN"),
    2014: ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    2015: ("answers-forums", "answers-students", "belief", "headlines", "images"),
    2016: ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_RAW, _TOKENISED = ("sentence1", "sentence2"), ("sentence1_tok", "sentence2_tok")


def _sts(year: int, pairs: int, revision: str) -> tuple[Dataset, Dataset]:
    """Declare a yearly task twice: raw, and Moses-tokenised and lower-cased as in SentEval (no Hub table)."""
    name = f"sts{year % 100}"
    raw = Dataset(
        name=name,
        licence=_STS_LICENCE,
        citation=_STS.format(year=year),
        splits={"test": "test"},
        hub_id=f"mteb/{name}-sts",
        revision=revision,
        texts=_RAW,
        score_range=(0, 5),
        rows={"test": pairs},
        divided=True,
        heading=name.upper(),
        suites=("sts",),
        mteb=name.upper(),
    )
    unpacked = tuple(f"STS/STS{year % 100}-en-test/STS.input.{subset}.txt" for subset in _SUBSETS[year])
    return raw, _tokenised(raw, "sts-task", {"test": unpacked})


def _tokenised(raw: Dataset, original_format: str, originals: dict[str, tuple[str, ...]]) -> Dataset:
    """Declare SentEval's version of a set: separate columns on a mirror, or the files of SimCSE's senteval.tar."""
    return raw.model_copy(
        update={
            "name": f"{raw.name}-tok",
            "suites": ("sts-tok",),
            "mteb": "",
            "hub_id": None,
            "revision": None,
            "texts": _TOKENISED,
            "folder": raw.name,
            "originals": originals,
            "original_format": original_format,
            "archive": SENTEVAL,
            "remedy": f"unpack SimCSE's {SENTEVAL.file} ({SENTEVAL.hub_id} on the Hub) into the mirror",
        }
    )


def _track(name: str, heading: str, suite: str) -> Dataset:
    first, second = name.split("-")
    return Dataset(
        name=f"sts17-{name}",
        licence=_STS_LICENCE,
        citation="Cer et al., 2017. SemEval-2017 task 1. SemEval. Its extension: Reimers and Gurevych, 2020. EMNLP.",
        lang=first if first != "en" else second,
        splits={"test": "test"},
        hub_id="mteb/sts17-crosslingual-sts",
        hub_config=name,
        revision="faeb762787bd10488a50c8b5be4a3b82e411949c",
        texts=_RAW,
        score_range=(0, 5),
        rows={"test": 2846 if name == "ko-ko" else 250},
        heading=heading,
        suites=("sts17", suite),
        mteb="STS17",
        mteb_subset=name,
    )


_STSB: Final = Dataset(
    name="stsb",
    licence=_STS_LICENCE,
    citation="Cer et al., 2017. SemEval-2017 task 1: Semantic textual similarity. SemEval.",
    splits=TRAIN_DEV_TEST,
    hub_id="mteb/stsbenchmark-sts",
    revision="b0fddb56ed78048fa8b90373c8a3cfc37b684831",
    texts=_RAW,
    score_range=(0, 5),
    rows={"train": 5749, "dev": 1500, "test": 1379},
    heading="STS-B",
    suites=("sts",),
    mteb="STSBenchmark",
)

_SICKR: Final = Dataset(
    name="sickr",
    licence="CC BY-NC-SA 3.0",
    citation="Marelli et al., 2014. A SICK cure for the evaluation of compositional semantic models. LREC.",
    splits={"test": "test"},  # the Hub's split `test` contains train, trial and test: 9,927 pairs
    hub_id="mteb/sickr-sts",
    revision="20a6d6f312dd54037fe07a32d58e5e168867909d",
    score_range=(1, 5),
    rows={"test": 4927},
    heading="SICK-R",
    suites=("sts",),  # no `mteb`: MTEB's SICK-R has 9,927 pairs
    remedy="remove this copy; the 4,927 test pairs are then selected from the Hub's mteb/sickr-sts (9,927 pairs)",
)

_STSB_MT: Final = _STSB.model_copy(
    update={
        "name": "stsb-mt",
        "citation": "Cer et al., 2017. SemEval-2017 task 1. SemEval. Its translation: STSb Multi MT, Philip May, 2021.",
        "splits": {"dev": "validation", "test": "test"},
        "hub_id": None,
        "revision": None,
        "heading": "",
        "suites": (),
        "mteb": "",
        "parallel": True,
        "rows": {"dev": 4500, "test": 4137},  # English sentence1; sentence2 in German, Spanish, French, by DeepL
        "remedy": "use embedded:stsb-mt, which is in the package",
    }
)

_YEARS: Final = (
    _sts(2012, 3108, "a0d554a64d88156834ff5ae9920b964011b16384"),
    _sts(2013, 1500, "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    _sts(2014, 3750, "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    _sts(2015, 3000, "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    _sts(2016, 1186, "4d8694f8f0e0100860b497b999b3dbed754a0513"),
)

STS: Final = (  # in the order of the papers' tables, which becomes the order of the suites
    *(raw for raw, _ in _YEARS),
    _STSB,
    _SICKR,
    *(tokenised for _, tokenised in _YEARS),
    _tokenised(_STSB, "sts-benchmark", {split: (f"STS/STSBenchmark/sts-{split}.csv",) for split in TRAIN_DEV_TEST}),
    _tokenised(_SICKR, "tsv", {"test": ("SICK/SICK_test_annotated.txt",)}),
    _STSB_MT,
    *(_track(name, heading, "sts17-bsl") for name, heading in _TRACKS.items()),
    *(_track(name, name.upper(), "sts17-other") for name in _OTHER_TRACKS),
)
