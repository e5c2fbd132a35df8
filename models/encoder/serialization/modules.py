"""Read and check the modules of a sentence-transformers folder: their classes and order, and its heads.

`HEADS` lists the classes of heads, `MODULES` all other modules of the library. See `Head` for adding a head.
"""

from __future__ import annotations

import ast
import itertools
import logging
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from bsl.models.encoder.cnn import CNN, TokenReLU
from bsl.models.encoder.config import read_json
from bsl.models.encoder.heads import (
    SENTENCES,
    TOKENS,
    VECTOR_NAMES,
    Dense,
    Dropout,
    Head,
    LayerNorm,
    Normalize,
)
from bsl.models.encoder.pooling import LAYER_WEIGHTS, MODES, TOKEN_WEIGHTS
from bsl.models.encoder.prompts import ROLES, Role
from bsl.models.encoder.serialization.settings import (
    LENGTHS,
    LISTED,
    ROUTER,
    TRANSFORMER,
    Table,
    check_table,
    handled_all,
)
from bsl.models.encoder.weights import read_weights, write_json, write_weights
from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

logger = logging.getLogger(__name__)

HEADS: Final[Sequence[type[Head]]] = (Dense, Normalize, LayerNorm, Dropout, CNN, TokenReLU)
_WIDTHS: Final = ("embedding_dimension", "word_embedding_dimension")
THROUGH_PYTHON: Final = "You can evaluate it from Python, as an object with a method encode(list[str])"
_ROUTER: Final = re.compile(r"sentence_transformers\..*\.Router")
_TEXT: Final = "text"


@dataclass(frozen=True)
class Module:
    """A module of the library that is not a head.

    Attributes:
        after: Modules that it may directly follow, as in `Head`; none for the first module, the backbone.
        files: Settings files, each with its known settings.
        refusal: Why it is not supported, and the remedy; empty if it is.
    """

    after: Sequence[str] = ()
    files: Mapping[str, Table] = field(default_factory=dict)
    refusal: str = ""


MODULES: Final[Mapping[str, Module]] = {
    "Transformer": Module(files=dict.fromkeys(LENGTHS, TRANSFORMER)),
    "WordEmbeddings": Module(
        files={
            "wordembedding_config.json": handled_all("tokenizer_class", "update_embeddings", "max_seq_length"),
            "whitespacetokenizer_config.json": handled_all("vocab", "stop_words", "do_lower_case"),
        }
    ),
    "StaticEmbedding": Module(),
    LAYER_WEIGHTS: Module(("Transformer",), {"config.json": handled_all(*_WIDTHS, "layer_start", "num_hidden_layers")}),
    TOKEN_WEIGHTS: Module(
        ("Transformer", "WordEmbeddings", TOKENS),
        {"config.json": handled_all("vocab", "word_weights", "unknown_word_weight")},
    ),
    "Pooling": Module(
        ("Transformer", "WordEmbeddings", LAYER_WEIGHTS, TOKEN_WEIGHTS, TOKENS),
        {"config.json": handled_all(*_WIDTHS, "pooling_mode", "include_prompt", *(mode.switch for mode in MODES))},
    ),
    "BoW": Module(refusal="has one dimension per word of its vocabulary; score TF-IDF instead"),
    "LSTM": Module(refusal="is a recurrent network; train a CNN instead"),
    "CLIPModel": Module(refusal="also embeds images; give an encoder of texts only"),
    "SpladePooling": Module(
        refusal="has one dimension per word of its vocabulary (a sparse encoder); give a dense encoder"
    ),
    "SparseStaticEmbedding": Module(
        refusal="has one dimension per word of its vocabulary (a sparse encoder); give a dense encoder"
    ),
    "SparseAutoEncoder": Module(refusal="makes vectors sparse; give the dense encoder that it was trained on"),
    "MultiVectorMask": Module(
        refusal="has one vector per token (late interaction); give an encoder with one vector per sentence"
    ),
}


@dataclass(frozen=True)
class SavedModule:
    """A module as `modules.json` lists it.

    Attributes:
        kind: Class name in sentence-transformers, without its package; for a head, the name of its class.
        folder: The module's folder; need not exist if it has neither settings nor weights.
        head: Its class, if it is a head.
    """

    kind: str
    folder: Path
    head: type[Head] | None = None

    @property
    def after(self) -> Sequence[str]:
        """Names of the modules that it may directly follow; none if it is unknown."""
        return _names(self.head.after if self.head else MODULES.get(self.kind, Module()).after)

    @property
    def files(self) -> Mapping[str, Table]:
        """Its settings files, each with its known settings."""
        if self.head is None:
            return MODULES[self.kind].files
        common = VECTOR_NAMES if self.head.vectors == SENTENCES else ()
        return {self.head.settings_file: handled_all(*(self.head.known or self.head.fields), *common)}


def _names(after: Sequence[str]) -> list[str]:
    """Return the names of modules, with all heads on the vectors in place of the vectors' name."""
    heads = {vectors: [head.__name__ for head in HEADS if head.vectors == vectors] for vectors in (TOKENS, SENTENCES)}
    return [name for entry in after for name in heads.get(entry, [entry])]


def read_modules(folder: Path) -> list[SavedModule]:
    """Read the modules of a folder in their order.

    Raises:
        EncoderError: A module is unknown, custom code, or in a position that is not supported; or one of its settings
            is (`check_table`).
    """
    entries = read_json(folder / "modules.json")
    for entry in entries:
        check_table(folder / "modules.json", entry, LISTED)
    listed = list(without_router(entries, folder))
    if any(Path(entry["path"]).is_absolute() or ".." in Path(entry["path"]).parts for entry in listed):
        raise EncoderError(f"{folder}: modules.json names folders outside it. Get the model from its publisher again.")
    foreign = [str(entry["type"]) for entry in listed if not str(entry["type"]).startswith("sentence_transformers.")]
    if foreign:
        raise EncoderError(
            f"{folder}: {', '.join(foreign)} is custom code, which is never run, expected modules of "
            f"sentence-transformers. {THROUGH_PYTHON}."
        )
    modules = [_module(entry, folder) for entry in listed]
    _check_order(folder, modules)
    names = [entry["name"] for entry in entries if "name" in entry]
    if len({*names}) < len(names):
        raise EncoderError(f"{folder}/modules.json: two modules have one name. Give each its own name.")
    return modules


def check_files(modules: Sequence[SavedModule]) -> None:
    """Check the settings files of modules.

    Raises:
        EncoderError: As `check_table`.
    """
    for module in modules:
        for name, table in module.files.items():
            check_table(module.folder / name, read_json(module.folder / name, {}), table)


def _check_order(folder: Path, modules: Sequence[SavedModule]) -> None:
    kinds = [module.kind for module in modules]
    refused = {kind: MODULES[kind].refusal for kind in kinds if kind in MODULES and MODULES[kind].refusal}
    if refused:
        reasons = ", ".join(f"{kind} {reason}" for kind, reason in refused.items())
        raise EncoderError(f"{folder}: unsupported module: {reasons}. {THROUGH_PYTHON}.")
    backbones = [kind for kind, module in MODULES.items() if not module.after and not module.refusal]
    misplaced = [
        f"{module.kind} follows {before.kind}, expected it after {' | '.join(module.after)}"
        if module.after
        else f"unknown module {module.kind}"
        for before, module in itertools.pairwise(modules)
        if before.kind not in module.after
    ]
    last = _names(Head.after)  # they output sentence vectors
    if not kinds or kinds[0] not in backbones:
        misplaced.insert(0, f"expected {' | '.join(backbones)} first")
    elif kinds[-1] not in last:
        misplaced.append(f"expected {' | '.join(last)} last")
    if misplaced:
        raise EncoderError(
            f"{folder}: modules {' → '.join(kinds) or 'none'}: {misplaced[0]}. Use the transformer's own folder and "
            f"set encoder.pooling. {THROUGH_PYTHON}."
        )


def _module(entry: Mapping[str, Any], folder: Path) -> SavedModule:
    kind, path = str(entry["type"]).rpartition(".")[2], folder / entry["path"]
    for head in HEADS:
        if (head.saved_as or head.__name__) == kind and head.matches(read_json(path / head.settings_file, {})):
            return SavedModule(head.__name__, path, head)
    return SavedModule(kind, path)


def without_router(listed: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[Mapping[str, Any]]:
    """Replace a Router in `modules.json` by the modules of its route for texts without a task.

    Raises:
        EncoderError: A Router has no such route.
    """
    for entry in listed:
        if not _ROUTER.fullmatch(str(entry["type"])):
            yield entry
            continue
        router = folder / entry["path"]
        settings = read_json(router / "router_config.json")
        check_table(router / "router_config.json", settings, ROUTER)
        route = _route(settings, router)
        logger.info("%s: using the route %s of %s", router, route, ", ".join(settings["structure"]))
        for name in settings["structure"][route]:
            yield {"type": settings["types"][name], "path": f"{entry['path'] or '.'}/{name}"}


def roles_not_loaded(folder: Path) -> tuple[Role, ...]:
    """Return the roles whose texts a Router sends to other modules than texts without a task, which are loaded."""
    routers = [
        folder / one["path"] for one in read_json(folder / "modules.json") if _ROUTER.fullmatch(str(one["type"]))
    ]
    known = [(read_json(router / "router_config.json"), router) for router in routers]
    return tuple(role for role in ROLES if any(_route(*one, role) != _route(*one) for one in known))


def _route(settings: Mapping[str, Any], folder: Path, task: str | None = None) -> str:
    """Return the route for texts of a task, by default of none, by the rules of sentence-transformers' Router."""
    routes, options = settings["structure"], settings.get("parameters") or {}
    mapped = {ast.literal_eval(key): route for key, route in (options.get("route_mappings") or {}).items()}
    default = options.get("default_route") or (next(iter(routes)) if options.get("allow_empty_key", True) else None)
    listed = [mapped.get((one, modality)) for one in (task, None) for modality in (_TEXT, None)]
    named = [name for name in (task, _TEXT) if name in routes]
    found = next((route for route in (*listed, *named, default) if route is not None), None)
    if found not in routes:
        raise EncoderError(
            f"{folder}: selects {' or '.join(routes)} by task, and has no default route for texts without a task. Give "
            "the folder of one route, or set default_route."
        )
    return str(found)


def read_head(saved: SavedModule) -> Head:
    """Read a module that is a head, with its weights, in fp32; draws no random numbers.

    Raises:
        EncoderError: Settings are missing or not supported, or the weights do not fit the settings.
    """
    kind = saved.head
    assert kind is not None
    settings = read_json(saved.folder / kind.settings_file, {})
    names = {settings.get(name) or SENTENCES for name in VECTOR_NAMES}
    if kind.vectors == SENTENCES and names != {SENTENCES}:
        raise EncoderError(
            f"{saved.folder}: {saved.kind} reads or writes {' and '.join(sorted(names))}, expected {SENTENCES}. Choose "
            "a model whose modules use sentence vectors."
        )
    try:
        with torch.device("meta"):
            head = kind.build(settings)
    except KeyError as error:
        raise EncoderError(
            f"{saved.folder}: {kind.settings_file} lacks {error}. Check that the copy is complete."
        ) from error
    except EncoderError as error:
        raise EncoderError(f"{saved.folder}: {error}") from error
    if not head.state_dict():
        return head
    weights = {name: tensor.float() for name, tensor in read_weights(saved.folder).items()}
    try:
        head.load_state_dict(weights, assign=True)
        head.check_weights()
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise EncoderError(
            f"{saved.folder}: weights and {kind.settings_file} do not match ({reason}). Check that the copy is "
            "complete."
        ) from error
    except EncoderError as error:
        raise EncoderError(f"{saved.folder}: {error}") from error
    return head


def name_of(head: Head) -> str:
    """Return a head's class name in sentence-transformers."""
    return head.saved_as or type(head).__name__


def write_head(head: Head, folder: Path) -> None:
    """Write a head's settings and weights, if it has any, into an existing folder."""
    if settings := head.settings():
        write_json(folder / head.settings_file, settings)
    if weights := head.state_dict():
        write_weights(folder, weights)
