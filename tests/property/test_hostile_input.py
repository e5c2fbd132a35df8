"""Random damage to everything that comes from outside: a clear error or a result, never another end, never a lost row.

The short form runs in seconds. `BSL_FUZZ_INPUTS=100000` makes it long, `BSL_FUZZ_SEED=…` repeats one; both are printed.
"""

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prefect import Flow
from prefect.exceptions import ParameterBindError, ParameterTypeError, SignatureMismatchError
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import ValidationError, validate
from pydantic import BaseModel

from flows.cli.artifacts import age
from flows.cli.settings import configured
from flows.config import Overrides, override
from flows.errands import do_errand
from flows.evaluation import evaluation
from flows.pipeline import pipeline
from flows.recipes import RECIPES, recipe
from storage.collect import collectable
from storage.errors import StorageError
from storage.export import export
from storage.keys import artifact_key
from storage.manifest import NAME, now
from storage.readers.columns import Columns
from storage.readers.report import ReadReport
from storage.readers.table import columns_of, format_of, read_table
from storage.refs import ViewsRef
from storage.store import Store
from tasks.site import Site
from tasks.stage.parts import Part
from tasks.stage.spread import Errand, ErrandError, run_errand
from tests.hostile import folder_of, key, put

# Read at import: the house's fixture takes these away from tests.
INPUTS = int(os.environ.get("BSL_FUZZ_INPUTS", "0"))
SECONDS = 2.0  # of the short form, for all tests together
SEED = int(os.environ.get("BSL_FUZZ_SEED", str(time.time_ns() % 2**32)))

BYTES = [
    b'"', b",", b"\t", b"\n", b"\r", b"\r\n", b"\\", b"{", b"}", b"[", b"]", b":", b"\x00", b"\xff", b"\xc3",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"\x78\x9c", b"x^", b"PK\x03\x04", b"null", b"true",
    b"-1e5", b"\\ud800", b"\\u0074", "é".encode(), "\u2028".encode(), b"text", b'"text"', b"a" * 300, b"", b" ",
]  # fmt: skip
VALUES: list[object] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.0, -0.0, 1e308, float("inf"), float("nan"),
    1e-320, "", " ", "x", "é", "\x00", "\ud800", "a\nb", "../..", "/etc/passwd", "x" * 5000, "Infinity", "[/]", "<b>",
    "%s", "{}", [], {}, [[]], [None], {"": ""}, {"a": {"b": {"c": []}}}, ["x", "x"], [1, "a", None],
]  # fmt: skip


class Draw:
    """Random numbers of a test's own.

    Attributes:
        dice: the numbers.
        counts: how often what became of an input.
    """

    def __init__(self, seed: str) -> None:
        self.dice = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.inputs = 0

    def rounds(self, share: float) -> Iterator[int]:
        """Numbers until the test has had its share of the inputs, or of the time."""
        end = time.monotonic() + SECONDS * share
        while self.inputs < INPUTS * share if INPUTS else time.monotonic() < end:
            yield self.inputs
            self.inputs += 1


@pytest.fixture
def draw(request, capsys):
    """Random numbers; how many inputs they made is printed with the seed."""
    made = Draw(f"{SEED} {request.node.name}")
    yield made
    told = f"BSL_FUZZ_SEED={SEED} {request.node.name}: {made.inputs:,} inputs, {dict(made.counts)}"
    with capsys.disabled():
        sys.stdout.write(f"\n  {told}\n")


def damaged(content: bytes, dice: random.Random) -> bytes:
    """Some bytes taken out, put in, exchanged or repeated."""
    for _ in range(dice.choice([1, 1, 1, 2, 5, 20])):
        start = dice.randrange(len(content) + 1)
        length = dice.choice([0, 0, 1, 1, 2, 10, 200])
        inserted = dice.choice([*BYTES, bytes([dice.randrange(256)]), content[start : start + length] * 2])
        content = content[:start] + inserted + content[start + length :]
    return content


SENTENCES = ["A cat sits.", 'He said "no", twice.', "Zwei Sätze, ja.", "7", "true", "[a]", "x^2 + y", "tab\there", "猫"]


def _jsonl() -> bytes:
    return "".join(json.dumps({"text": text, "label": number}) + "\n" for number, text in enumerate(SENTENCES)).encode()


def _csv() -> bytes:
    return (
        pl.DataFrame({"text": SENTENCES, "label": map(str, range(len(SENTENCES)))}, strict=False).write_csv().encode()
    )


FILES: dict[str, Callable[[], bytes]] = {
    "txt": lambda: "\n".join(SENTENCES).encode(),
    "jsonl": _jsonl,
    "csv": _csv,
    "tsv": lambda: b"text\tlabel\n" + b"".join(f"{text.replace(chr(9), ' ')}\t1\n".encode() for text in SENTENCES),
}


@pytest.mark.parametrize("suffix", FILES)
def test_damaged_text_is_read_rejected_or_refused(tmp_path, draw, suffix):
    """Every line of a text or JSON file is either read or counted as rejected."""
    dice, counts = draw.dice, draw.counts
    whole = FILES[suffix]()
    path = tmp_path / f"a.{suffix}"
    for _ in draw.rounds(0.13):
        content = damaged(whole, dice)
        path.write_bytes(content)
        report = ReadReport("fuzz")
        try:
            frame = table_of(path, report)
        except StorageError as error:
            counts["refused"] += 1
            assert str(path) in str(error)  # noqa: PT017 - a result is as good
            continue
        counts["read"] += 1
        assert frame.height == report.records
        assert frame["text"].null_count() == 0 or suffix in {"csv", "tsv"}
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if suffix == "jsonl":
            assert report.records + report.rejected == sum(bool(line.strip()) for line in lines), content
        if suffix == "txt":
            assert report.records + report.rejected == len(lines) - (lines[-1] == b""), content
            kept = [line.decode().removesuffix("\r") for line in lines if _is_utf8(line)]
            assert frame["text"].to_list() == kept[: frame.height], content


def table_of(path: Path, report: ReadReport, column: str = "text") -> pl.DataFrame:
    """Also of a file without a record, which may give no frame."""
    frames = list(read_table(str(path), format_of(str(path)), Columns((column,)), report))
    return pl.concat([pl.DataFrame(schema={column: pl.String}), *frames])


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


TYPES: list[pa.DataType] = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.int8(), pa.uint64(), pa.float16(), pa.float64(),
    pa.bool_(), pa.null(), pa.decimal128(9, 2), pa.decimal256(50, 3), pa.date32(), pa.timestamp("us", "+05:30"),
    pa.duration("s"), pa.list_(pa.string()), pa.struct([("x", pa.int8())]), pa.dictionary(pa.int8(), pa.string()),
    pa.map_(pa.string(), pa.int8()),
]  # fmt: skip


def test_any_parquet_file_is_read_or_refused(tmp_path, draw):
    dice, counts = draw.dice, draw.counts
    path = tmp_path / "a.parquet"
    for _ in draw.rounds(0.16):
        dtype = dice.choice(TYPES)
        names = [dice.choice(["text", "label", "", "a.b", "é"]) for _ in range(dice.randrange(1, 4))]
        columns = [pa.nulls(3, dice.choice([dtype, pa.string()])) for _ in names]
        if dice.random() < 0.5:
            columns[0] = pa.array(["a", None, "c"])
        try:
            pq.write_table(pa.Table.from_arrays(columns, names=names), path)
        except pa.ArrowException:
            continue
        if dice.random() < 0.7:
            path.write_bytes(damaged(path.read_bytes(), dice))
        try:
            found = columns_of(str(path), format_of(str(path)), ReadReport("fuzz"))
            table_of(path, ReadReport("fuzz"), dice.choice(found or ("text",)))
            counts["read"] += 1
        except StorageError:
            counts["refused"] += 1


def spoiled(value: object, dice: random.Random) -> object:
    """A JSON value with one part exchanged, taken away or added."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        name = dice.choice(list(value))
        rest = dict(value)
        match dice.randrange(6):
            case 0:
                del rest[name]
            case 1:
                rest[str(dice.choice(["surprise", "../x", "a\0", "x" * 3000, ""]))] = rest[name]
            case _:
                rest[name] = spoiled(rest[name], dice)
        return rest
    if isinstance(value, list) and value and dice.random() < 0.7:
        place = dice.randrange(len(value))
        return [*value[:place], spoiled(value[place], dice), *value[place + 1 :]]
    return dice.choice(VALUES)


def test_no_manifest_ends_the_store(tmp_path, draw):
    """Also: nothing appears outside the store and the export, and nothing is deleted."""
    dice, counts = draw.dice, draw.counts
    root = tmp_path / "room" / "store"
    store, other = Store(str(root)), ViewsRef(key=key(2))
    ref = put(store, 1)
    put(store, 2)
    manifest = folder_of(store, ref) / NAME
    whole = manifest.read_bytes()
    for number in draw.rounds(0.13):
        if dice.random() < 0.3:
            manifest.write_bytes(damaged(whole, dice))
        else:
            text = json.dumps(spoiled(json.loads(whole), dice), ensure_ascii=True)
            manifest.write_text(text)
        for act in (
            lambda: store.check(ref),
            lambda: store.scan(ref).collect(),
            lambda to=f"{number}": export(store, ref, tmp_path / "room" / "out" / to),
            lambda: collectable(store, now() - now(), now()),
        ):
            try:
                act()
                counts["taken"] += 1
            except StorageError:
                counts["refused"] += 1
        assert store.defect(other) is None
        assert {path.name for path in tmp_path.iterdir()} == {"room"}
        assert {path.name for path in (tmp_path / "room").iterdir()} <= {"store", "out"}


def places(model: BaseModel, above: str = "") -> Iterator[str]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        yield f"{above}{name}"
        if isinstance(value, BaseModel):
            yield from places(value, f"{above}{name}.")


def test_no_setting_ends_a_run_but_in_an_error(draw):
    """A configuration that is taken has a key, and is read back from its own JSON."""
    dice, counts = draw.dice, draw.counts
    names = list(RECIPES)
    bases = {name: (recipe(name), list(places(recipe(name)))) for name in dice.sample(names, min(4, len(names)))}
    for _ in draw.rounds(0.13):
        name = dice.choice(list(bases))
        base, fields = bases[name]
        try:
            if dice.random() < 0.5:
                whole = spoiled(base.model_dump(mode="json"), dice)
                config = override(base, whole if isinstance(whole, dict) else {"title": whole})
            else:
                value = dice.choice(VALUES)
                text = dice.choice([str(value).encode(errors="replace").decode(), json.dumps(value), "[" * 5000])
                config = configured(name, [f"{dice.choice(fields)}={text}" for _ in range(dice.randrange(1, 3))])
        except ValueError:
            counts["refused"] += 1
            continue
        counts["taken"] += 1
        artifact_key("fuzz", "corpus", 1, {"config": config})
        assert type(config).model_validate_json(config.model_dump_json()) == config


def test_no_age_ends_the_collection(draw):
    dice, counts = draw.dice, draw.counts
    for _ in draw.rounds(0.01):
        text = "".join(dice.choice("0123456789hd.- ٣e+\0") for _ in range(dice.randrange(8)))
        try:
            now() - age(text)
            counts["taken"] += 1
        except ValueError:
            counts["refused"] += 1


FLOWS: dict[str, tuple[Flow[..., object], dict[str, object]]] = {
    "bsl-pipeline": (
        pipeline,
        {
            "recipe_name": "tiny",
            "overrides": {"training": {"lr": 0.1, "objective": {"name": "bsl"}}, "ingest": {"corpus": {"limit": 9}}},
            "site": {"store": "s3://bucket/store", "device": "cpu", "threads": 2, "save_minutes": 1.5},
            "start": "pairs",
            "until": "checkpoint",
            "made": [{"kind": "corpus", "key": "0" * 64}],
        },
    ),
    "bsl-evaluate": (evaluation, {"models": ["embedded:bert-mini"], "suite": ["embedded:stsb/test"], "site": {}}),
    "bsl-errand": (
        do_errand,
        {"sent": {"call": "tasks.translate:translate_shard", "title": "t", "arguments": {"start": 1}}, "site": {}},
    ),
}
CALLS = ["os:system", "tasks.site:Site", "flows.pipeline:pipeline", "tasks", ":", "tasks.nowhere:x", "tasks/../x:y"]


def test_no_parameter_of_a_deployment_ends_the_server_or_a_worker_but_in_an_error(draw, caplog):
    """As the server reads them, by the schema that `prefect deploy` sends it, and as the worker's flow does."""
    dice, counts = draw.dice, draw.counts
    caplog.set_level("CRITICAL", logger="prefect")  # Prefect writes what it refuses into the log
    schemas = {name: parameter_schema(flow.fn).model_dump() for name, (flow, _) in FLOWS.items()}
    for _ in draw.rounds(0.05):
        name = dice.choice(list(FLOWS))
        flow, whole = FLOWS[name]
        given = spoiled(whole, dice)
        if not isinstance(given, dict):
            continue
        if flow is do_errand and isinstance(given.get("sent"), dict) and dice.random() < 0.5:
            given["sent"] = given["sent"] | {"call": dice.choice(CALLS)}
        try:
            validate(given, schemas[name], raise_on_error=True)
            counts["taken by the server"] += 1
        except ValidationError:
            counts["refused by the server"] += 1
        try:
            asked = flow.validate_parameters(given)
            if flow is pipeline:
                override(recipe(asked["recipe_name"]), asked.get("overrides") or Overrides())
                Part(asked.get("start"), asked.get("until"))
            if flow is do_errand:
                run_errand(Errand.model_validate(asked["sent"]), Site())
            counts["taken by the flow"] += 1
        except (ParameterTypeError, ParameterBindError, SignatureMismatchError, ErrandError, ValueError):
            counts["refused by the flow"] += 1
