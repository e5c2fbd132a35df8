"""`bsl export ENCODER FOLDER --onnx --int8 --dims … --static`: write small and fast forms, and measure their loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Group, Parameter

from bsl.flows.cli.terminal.checks import check_encoders, check_files, check_sets
from bsl.flows.cli.terminal.log_lines import printable, spinner
from bsl.flows.cli.terminal.options import (
    ENCODER_FORMS,
    FIRST,
    NEW_PATH,
    NOT_GIVEN,
    SETTINGS,
    LabelColumns,
    Output,
    Site,
    options_of,
)
from bsl.flows.cli.terminal.printing import print_json, print_line, print_table
from bsl.storage.filesystem.os_errors import writing
from bsl.tasks.serving.config import CompressionConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cyclopts import Token

    FormOptions = Mapping[str, Any]


def _dims(_: type, words: Sequence[Token]) -> tuple[int, ...]:
    """Return the numbers of dimensions in `256,128,64`."""
    text = ",".join(word.value for word in words)
    numbers = [number.strip() for number in text.split(",")]
    if not all(number.isdecimal() and int(number) > 1 for number in numbers):
        raise ValueError(f"expected numbers of dimensions such as 256,128,64 (found {text})")
    return tuple(map(int, numbers))


if not TYPE_CHECKING:
    FormOptions = options_of(
        CompressionConfig,
        CompressionConfig.model_fields,
        FIRST,
        dims=Parameter(converter=_dims, n_tokens=1, consume_multiple=False, metavar="K,K"),
    )

_FORMS_OF: Final = {  # option → the forms that it belongs to
    "static_dims": ("static",),
    "target": ("int8",),
    "max_loss": ("int8",),
    "min_cosine": ("int8",),
    "text": ("int8", "dims", "static"),
    "sentences": ("int8", "dims", "static"),
}


HUB: Final = Group("Hub", sort_key=2)


def export(
    encoder: Annotated[str, Parameter(help=ENCODER_FORMS)],
    folder: Annotated[Path, NEW_PATH, Parameter(help="a new folder")],
    /,
    *,
    forms: FormOptions = NOT_GIVEN,
    columns: LabelColumns = LabelColumns(),
    revision: Annotated[str | None, Parameter(group=SETTINGS, help="commit of a Hub model")] = None,
    push_to_hub: Annotated[
        str | None, Parameter(group=HUB, help="ORG/NAME: upload the folder as a new, private model repository")
    ] = None,
    public: Annotated[bool, Parameter(group=HUB, help="make the uploaded repository public")] = False,
    place: Site = NOT_GIVEN,
    output: Output = Output(),
) -> None:
    """Write small and fast forms: ONNX, int8, fewer dimensions, a static table."""
    _check_forms(forms)
    if folder.exists():
        raise FileExistsError(f"{folder}: already exists. Name a new folder.")
    from bsl.flows.config import override
    from bsl.flows.run_context import run_context_of
    from bsl.storage.sources.model_sources import check_revision

    site = run_context_of(place)
    check_encoders([encoder], site)
    check_revision(encoder, revision)
    config = override(CompressionConfig(), forms, {"suite": columns.of_sets(forms.get("suite", ()))})
    check_files(*config.text)
    check_sets(config.suite, site)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    from bsl.storage.hub.upload import check_repository, push
    from bsl.tasks.serving.compress import export_variants
    from bsl.tasks.serving.form_scores import TITLE as SCORES
    from bsl.tasks.serving.form_scores import losses
    from bsl.tasks.serving.measures import TITLE

    if push_to_hub:
        check_repository(push_to_hub)
    elif public:
        raise ValueError(
            "--public has an effect only with --push-to-hub. Add --push-to-hub ORG/NAME, or remove --public"
        )
    with spinner(f"writing the forms of {encoder}, and measuring each"):
        measured = export_variants(site, encoder, revision, folder, config)
    if not output.json:
        print_table(TITLE, measured.forms)
        if measured.scores:
            print_table(SCORES, measured.scores)
            print_line(losses(measured.scores) or "No form loses on these sets.")
        print(printable(f"folder:  {folder}"))
    address = push(folder, push_to_hub, public=public) if push_to_hub else None
    if output.json:
        print_json({"folder": folder, "forms": measured.forms, "scores": measured.scores, "hub": address})
    elif address:
        print(printable(f"hub:     {address}"))


def _check_forms(given: Mapping[str, Any]) -> None:
    """Refuse an option of a form that is not requested."""
    for option in given:
        forms = _FORMS_OF.get(option, (option,))
        if not any(form in given for form in forms):
            name, needed = f"--{option.replace('_', '-')}", " or ".join(f"--{form}" for form in forms)
            raise ValueError(f"{name} has an effect only with {needed}. Add {needed}, or remove {name}")
