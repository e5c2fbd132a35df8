"""`bsl export ENCODER FOLDER --onnx --int8 --dims … --static`: write small and fast forms, and measure their loss."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from bsl.flows.cli.terminal.log_lines import printable, spinner
from bsl.flows.cli.terminal.options import (
    ENCODER_FORMS,
    LabelColumns,
    Output,
    Site,
    check_encoders,
    check_files,
    check_sets,
    check_suites,
)
from bsl.flows.cli.terminal.printing import print_json, print_line, print_table
from bsl.storage.filesystem.os_errors import writing

_FORMS_OF: Final = {  # option → the forms that it belongs to
    "static_dims": ("static",),
    "target": ("int8",),
    "max_loss": ("int8",),
    "min_cosine": ("int8",),
    "text": ("int8", "dims", "static"),
    "sentences": ("int8", "dims", "static"),
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Forms:
    """The forms to write, and their options."""

    onnx: Annotated[bool, Parameter(help="write an ONNX graph in fp32: onnx/model.onnx")] = False
    int8: Annotated[bool, Parameter(help="write an ONNX graph with int8 products: onnx/model_qint8_….onnx")] = False
    target: Annotated[
        Literal["vnni", "avx2"] | None,
        Parameter(help="processor of the int8 graph: with VNNI (or ARM), or any x86 [default: like this machine]"),
    ] = None
    dims: Annotated[
        str | None, Parameter(help="write encoders with fewer dimensions, for example 256,128,64: dims-K/")
    ] = None
    static: Annotated[bool, Parameter(help="write a table of token vectors, without a transformer: static/")] = False
    static_dims: Annotated[int | None, Parameter(help="width of the table [default: 256]")] = None
    max_loss: Annotated[float | None, Parameter(help="maximum loss of int8 on STS-B dev, in points [default: 0.3]")] = (
        None
    )
    min_cosine: Annotated[
        float | None, Parameter(help="minimum mean cosine of int8 and fp32 vectors [default: 0.98]")
    ] = None
    text: Annotated[
        tuple[str, ...] | None,
        Parameter(
            consume_multiple=(1, None), help="files of sentences to fit --int8, --dims and --static on [default: NLI]"
        ),
    ] = None
    sentences: Annotated[int | None, Parameter(help="maximum number of sentences to fit on [default: 20000]")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, by the names of their settings.

        Raises:
            ValueError: An option is malformed, or belongs to a form that is not requested.
        """
        options = asdict(self) | {"dims": _dims(self.dims) or None}
        for option, forms in _FORMS_OF.items():
            if options[option] is not None and not any(options[form] for form in forms):
                name, needed = f"--{option.replace('_', '-')}", " or ".join(f"--{form}" for form in forms)
                raise ValueError(f"{name} has an effect only with {needed}. Add {needed}, or remove {name}")
        return {name: value for name, value in options.items() if value is not None}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Upload:
    """Upload to the Hub."""

    push_to_hub: Annotated[
        str | None, Parameter(help="ORG/NAME: upload the folder as a new, private model repository")
    ] = None
    public: Annotated[bool, Parameter(help="make the uploaded repository public")] = False


def export(
    encoder: Annotated[str, Parameter(help=ENCODER_FORMS)],
    folder: Annotated[Path, Parameter(help="a new folder")],
    /,
    *,
    forms: Forms = Forms(),
    suite: Annotated[
        tuple[str, ...],
        Parameter(consume_multiple=(1, None), help="score all forms on these sets too: labels:FILE, own:FILE, sts …"),
    ] = (),
    columns: LabelColumns = LabelColumns(),
    revision: Annotated[str | None, Parameter(help="commit of a Hub model")] = None,
    upload: Upload = Upload(),
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Write an encoder's small and fast forms: ONNX, int8, fewer dimensions, a static table."""
    options = forms.given
    if folder.exists():
        raise FileExistsError(f"{folder}: already exists. Name a new folder.")
    check_encoders([encoder], place)
    from bsl.storage.sources.model_sources import check_revision

    check_revision(encoder, revision)
    check_files(*options.get("text", ()))
    suite = columns.of_sets(suite)
    check_suites(suite)
    check_sets(suite, place)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    from bsl.flows.run_context import run_context_of
    from bsl.storage.hub.upload import check_repository, push
    from bsl.tasks.serving.compress import CompressionConfig, export_variants
    from bsl.tasks.serving.form_scores import TITLE as SCORES
    from bsl.tasks.serving.form_scores import losses
    from bsl.tasks.serving.measures import TITLE

    config = CompressionConfig.model_validate(options | {"suite": suite})
    if upload.push_to_hub:
        check_repository(upload.push_to_hub)
    elif upload.public:
        raise ValueError(
            "--public has an effect only with --push-to-hub. Add --push-to-hub ORG/NAME, or remove --public"
        )
    with spinner(f"writing the forms of {encoder}, and measuring each"):
        measured = export_variants(run_context_of(place.given), encoder, revision, folder, config)
    if not output.json:
        print_table(TITLE, measured.forms)
        if measured.scores:
            print_table(SCORES, measured.scores)
            print_line(losses(measured.scores) or "No form loses on these sets.")
        print(printable(f"folder:  {folder}"))
    address = push(folder, upload.push_to_hub, public=upload.public) if upload.push_to_hub else None
    if output.json:
        print_json({"folder": folder, "forms": measured.forms, "scores": measured.scores, "hub": address})
    elif address:
        print(printable(f"hub:     {address}"))


def _dims(text: str | None) -> tuple[int, ...]:
    words = text.split(",") if text else []
    if not all(word.strip().isdecimal() and int(word) > 1 for word in words):
        raise ValueError(f"--dims {text}: expected numbers of dimensions such as 256,128,64")
    return tuple(map(int, words))
