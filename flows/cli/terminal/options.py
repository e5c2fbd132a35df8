"""Options that several verbs share, each declared once.

A verb is a function; its parameters are its options. A group of options is a frozen dataclass whose fields are options
of the verb. The environment variables in the help are read by `flows.run_context`, also for workers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

from cyclopts import Group, Parameter

PLACE: Final = Group("Where it runs", sort_key=2)
OUTPUT: Final = Group("Output", sort_key=3)
READING: Final = Group("How files are read", sort_key=1)
ENCODER_FORMS: Final = "folder, Hub id, embedded:<name>, checkpoint/<key> or report/<key>"
TEXT_FORMS: Final = "files (txt, csv, tsv, jsonl, parquet), folders, patterns with * or datasets"

StoreUrl = Annotated[
    str | None, Parameter(group=PLACE, help="URL of the artifact store [default: .bsl/store] [env: BSL_STORE]")
]
MirrorFolder = Annotated[
    str | None, Parameter(group=PLACE, help="folder of datasets in place of the Hub [env: BSL_DATA_MIRROR]")
]


@Parameter(name="*", group=PLACE)
@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one process works."""

    store: StoreUrl = None
    mirror: MirrorFolder = None
    device: Annotated[
        str | None, Parameter(help="cpu, cuda, cuda:1 … [default: a GPU if there is one] [env: BSL_DEVICE]")
    ] = None
    threads: Annotated[int | None, Parameter(help="CPU threads [default: all cores] [env: BSL_THREADS]")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options by the names of their fields in `RunContext`; None where one was not given."""
        return asdict(self)


@Parameter(name="*", group=PLACE)
@dataclass(frozen=True, kw_only=True)
class Site(Place):
    """Where a run happens."""

    cluster: Annotated[str | None, Parameter(help="Dask scheduler, for example tcp://HOST:8786 [env: BSL_CLUSTER]")] = (
        None
    )


Debug = Annotated[bool, Parameter(group=OUTPUT, help="show tracebacks and Prefect's log")]


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Output:
    """What a verb prints."""

    json: Annotated[bool, Parameter(help="print the outcome as one JSON value and nothing else")] = False
    debug: Debug = False


@Parameter(name="*", group=READING)
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How own files are read."""

    lang: Annotated[str | None, Parameter(help="ISO 639 code of the text [default: en]")] = None
    columns: Annotated[
        tuple[str, ...] | None, Parameter(consume_multiple=(1, None), help="columns of text [default: guessed]")
    ] = None
    title: Annotated[str | None, Parameter(help="column of titles, '' for none [default: guessed]")] = None
    document: Annotated[
        str | None,
        Parameter(help="column whose equal values make a document, '' for none [default: guessed]"),
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, by the names of their settings."""
        return {name: value for name, value in asdict(self).items() if value is not None}


Changes = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set", metavar="FIELD=VALUE", help="change a setting, for example training.lr=3e-4; repeat for more"
    ),
]
AskedPrecision = Annotated[
    Literal["auto", "fp32", "bf16"] | None,
    Parameter(
        help="number format of training and encoding; auto: bf16 if the device has it, else fp32 [default: auto, or "
        "the recipe's]"
    ),
]
