"""`bsl export ENCODER FOLDER --onnx --int8 --dims … --static`: an encoder's small, fast forms, and what each loses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.cli.terminal.options import add_json, add_site_options, print_json, print_table

if TYPE_CHECKING:
    import argparse


_OPTIONS_OF: Final = {
    "static_dims": ("static",),
    "target": ("int8",),
    "max_loss": ("int8",),
    "min_cosine": ("int8",),
    "text": ("dims", "static"),
    "sentences": ("dims", "static"),
}


def define_export(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument(
        "encoder", metavar="ENCODER", help="checkpoint/<key>, report/<key>, a folder, embedded:<name> or a Hub id"
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a new folder")
    parser.add_argument("--onnx", action="store_true", help="an ONNX graph in fp32: onnx/model.onnx")
    parser.add_argument("--int8", action="store_true", help="an ONNX graph with int8 products: onnx/model_qint8_….onnx")
    parser.add_argument(
        "--target", choices=["vnni", "avx2"],
        help="processors for the int8 graph: with VNNI (or ARM), or any x86 (this machine's kind)",
    )  # fmt: skip
    parser.add_argument("--dims", metavar="K,…", help="encoders of so many dimensions each, 256,128,64: dims-K/")
    parser.add_argument("--static", action="store_true", help="a table of token vectors, no transformer: static/")
    parser.add_argument("--static-dims", type=int, help="width of the table (256)")
    parser.add_argument("--max-loss", type=float, help="points on STS-B dev that int8 may lose (0.3)")
    parser.add_argument("--min-cosine", type=float, help="mean cosine with fp32 that int8 must have (0.98)")
    parser.add_argument("--text", nargs="+", metavar="FILE", help="sentences by which --dims and --static are made")
    parser.add_argument("--sentences", type=int, help="of those, how many are read at most (20000)")
    parser.add_argument("--revision", help="commit of a Hub model")
    parser.add_argument(
        "--push-to-hub", metavar="ORG/NAME", help="upload the folder as a new, private model repository"
    )
    parser.add_argument("--public", action="store_true", help="for everyone to read, with --push-to-hub")
    add_json(parser)
    add_site_options(parser)
    parser.set_defaults(call=_export)


def _export(arguments: argparse.Namespace) -> int:
    from flows.run_context import run_context_of
    from storage.hub.upload import check_repository, push
    from tasks.serving.compress import Wanted, export_variants
    from tasks.serving.compression_card import TITLE

    _check(arguments)
    asked = {name: value for name in Wanted.model_fields if (value := getattr(arguments, name)) is not None}
    wanted = Wanted.model_validate({**asked, "dims": _dims(arguments.dims)})
    if name := arguments.push_to_hub:
        check_repository(name)
    elif arguments.public:
        raise ValueError("--public says who may read an upload, and there is none; add --push-to-hub ORG/NAME")
    site = run_context_of(vars(arguments))
    rows = export_variants(site, arguments.encoder, arguments.revision, arguments.folder, wanted)
    if not arguments.json:
        print_table(TITLE, rows)
        print(f"folder:  {arguments.folder}")
    address = push(arguments.folder, name, public=arguments.public) if name else None
    if arguments.json:
        print_json({"folder": arguments.folder, "forms": rows, "hub": address})
    elif address:
        print(f"hub:     {address}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options of forms that are not asked for.

    Raises:
        ValueError: there is one.
    """
    for option, forms in _OPTIONS_OF.items():
        if getattr(arguments, option) is not None and not any(getattr(arguments, form) for form in forms):
            whose = " or ".join(f"--{form}" for form in forms)
            raise ValueError(f"--{option.replace('_', '-')} is about {whose}; ask for that too, or leave it out")


def _dims(text: str | None) -> tuple[int, ...]:
    words = text.split(",") if text else []
    if not all(word.strip().isdecimal() and int(word) > 1 for word in words):
        raise ValueError(f"--dims {text}: expected numbers of dimensions such as 256,128,64")
    return tuple(map(int, words))
