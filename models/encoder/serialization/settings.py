"""Check the settings files of a sentence-transformers folder, so that no setting is ignored.

Each file has a table of the settings that sentence-transformers reads. A setting is either handled by the code that
reads it, or harmless (`Harmless` says for which values), or refused with its name. A setting that is in no table is
refused too: a newer release may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bsl.models.encoder.heads import TOKENS
from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

Harmless: TypeAlias = Callable[[Any], str | None]
"""Returns None if a value changes no vector, else the name of the setting within it; empty for the value itself."""
Table: TypeAlias = Mapping[str, Harmless]

PROMPTS: Final = "config_sentence_transformers.json"
LENGTHS: Final = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Files with a transformer's maximal length and casing; old releases name the file after the architecture."""
_MODEL_TYPE: Final = "SentenceTransformer"
_FORWARD: Final = {"method": "forward", "method_output_name": "last_hidden_state"}


def handled(_: object) -> None:
    """Accept any value: other code reads the setting, or it changes no vector."""


def handled_all(*names: str) -> Table:
    """Return a table in which any value of these settings is accepted."""
    return dict.fromkeys(names, handled)


def unset(value: object) -> str | None:
    """Accept null and empty values."""
    return None if value in (None, {}, [], "", False) else ""


def one_of(*values: object) -> Harmless:
    """Accept these values."""
    return lambda value: None if value in values else ""


def only(*names: str) -> Harmless:
    """Accept an object with these fields."""

    def found(value: object) -> str | None:
        if not isinstance(value, Mapping):
            return unset(value)
        return next((str(name) for name in value if name not in names), None)

    return found


def _processing(value: object) -> str | None:
    """Accept options of other inputs than texts, and for texts the library's own defaults."""
    if not isinstance(value, Mapping):
        return unset(value)
    defaults: dict[str, Sequence[object]] = {"padding": (True, "longest"), "truncation": (True, "longest_first")}
    for group, options in value.items():
        if group in ("audio", "image", "video") or not options:
            continue
        if group != "text":
            return str(group)
        for name, option in options.items():
            if option not in defaults.get(name, ()):
                return f"text.{name}"
    return None


def _modalities(value: object) -> str | None:
    """Accept plain text by the last layer; a chat template (`message`) wraps texts."""
    if not isinstance(value, Mapping):
        return ""
    if "message" in value:
        return "message"
    text = value.get("text")
    if not isinstance(text, Mapping):
        return "text"
    described = {**text, "method_output_name": _single(text.get("method_output_name"))}
    return next(
        (f"text.{name}" for name in {**described, **_FORWARD} if described.get(name) != _FORWARD.get(name)), None
    )


def _single(value: object) -> object:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


# How to find files; the library replaces these by its own arguments.
_FINDING: Final = ("subfolder", "token", "cache_dir", "revision", "local_files_only", "trust_remote_code")
# Precision, kernels and placement. Encoders are loaded in fp32, whatever precision a folder asks for.
_COMPUTING: Final = (
    "dtype",
    "torch_dtype",
    "attn_implementation",
    "device_map",
    "low_cpu_mem_usage",
    "use_safetensors",
)
_MODEL: Final = only(*_FINDING, *_COMPUTING, "add_pooling_layer")  # poolers are removed
_TOKENIZER: Final = only(*_FINDING, "use_fast")
_CONFIG: Final = only(*_FINDING, "use_cache")
TRANSFORMER: Final[Table] = {
    **handled_all("max_seq_length", "do_lower_case", "unpad_inputs", "backend"),
    **dict.fromkeys(("query_length", "document_length", "query_expansion", "tokenizer_name_or_path"), unset),
    "transformer_task": one_of("feature-extraction"),
    "modality_config": _modalities,
    "module_output_name": one_of(TOKENS),
    "processing_kwargs": _processing,
    **dict.fromkeys(("model_args", "model_kwargs"), _MODEL),
    **dict.fromkeys(("tokenizer_args", "processor_kwargs"), _TOKENIZER),
    **dict.fromkeys(("config_args", "config_kwargs"), _CONFIG),
}
ROOT: Final[Table] = {
    **handled_all("__version__", "prompts", "default_prompt_name", "truncate_dim"),
    **handled_all("similarity_fn_name", "requirements"),  # change no vector
    "model_type": one_of(_MODEL_TYPE),
}
LISTED: Final = handled_all("idx", "name", "path", "type", "kwargs")  # entries of modules.json
ROUTER: Final[Table] = {
    **handled_all("types", "structure"),
    "parameters": only("default_route", "allow_empty_key", "route_mappings"),
}


def check_table(path: Path, settings: Mapping[str, Any], table: Table) -> None:
    """Check settings that were read from the file `path`.

    Raises:
        EncoderError: A setting is unknown, or has a value that would change the vectors and is not supported.
    """
    for name, value in settings.items():
        inner = table[name](value) if name in table else ""
        if inner is None:
            continue
        whole = f"{name}.{inner}" if inner else name
        reason = "is not supported and would change the vectors" if name in table else "is unknown"
        raise EncoderError(
            f"{path}: the setting {whole} {reason} (found {_at(value, inner)!r:.80}). Remove it if the model does not "
            "need it; otherwise evaluate the model from Python, as an object with a method encode(list[str])."
        )


def _at(value: object, inner: str) -> object:
    for name in inner.split(".") if inner else ():
        value = value.get(name) if isinstance(value, Mapping) else value
    return value
