"""Prompts: texts before every text, some only for queries or for documents, some not pooled."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal

from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from bsl.models.encoder.static import Tokenizer

Role = Literal["query", "document"]
ROLES: Final[Mapping[Role, tuple[str, ...]]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""Names of prompts for queries and for documents, the first one counts: those of sentence-transformers."""


def role_prompt(prompts: Mapping[str, str], role: Role) -> str | None:
    """Return the prompt of queries or of documents, as `encode_query` and `encode_document` of sentence-transformers.

    The library documents the names `passage` and `corpus` too, but finds its own empty prompt `document` before them.

    Args:
        prompts: Prompts by name, as the encoder's folder lists them, without empty ones.
        role: What the texts are.

    Returns:
        The prompt, "" if only the other role has one; None if neither has: the default prompt belongs to both. The
        library leaves the default prompt out then.
    """
    if not any(name in prompts for names in ROLES.values() for name in names):
        return None
    return next((prompts[name] for name in ROLES[role] if name in prompts), "")


def check_role(name: str, not_loaded: Collection[Role], role: Role) -> None:
    """Refuse texts of a role that have other modules (a Router) than the loaded ones.

    Args:
        name: Name of the encoder.
        not_loaded: Roles whose texts have other modules.
        role: What the texts are.

    Raises:
        EncoderError: The texts have other modules.
    """
    if role in not_loaded:
        raise EncoderError(
            f"{name}: a Router has other modules for texts of the task {role}, which are not loaded; loaded are those "
            "for texts without a task. Embed with sentence-transformers; or export this encoder (`bsl export`) and "
            "search with the exported one, which has the loaded modules only."
        )


def prompt_length(tokenizer: Tokenizer, prompt: str) -> int:
    """Return the number of a prompt's tokens by the library's rule: all but one special token at the end."""
    ids = list(tokenizer(prompt, return_attention_mask=False)["input_ids"])
    return len(ids) - (ids[-1:] != [] and ids[-1] in tokenizer.all_special_ids)


def surrounding_ids(tokenizer: Tokenizer, prompt: str) -> tuple[list[int], list[int]]:
    """Return the ids before a text (special tokens and the prompt's) and the special tokens' ids after it."""
    prompt_ids, text_ids = (
        list(tokenizer(text, return_attention_mask=False)["input_ids"]) for text in (prompt, f"{prompt}the")
    )
    special = {*tokenizer.all_special_ids} - {tokenizer.unk_token_id}
    after = list(takewhile(special.__contains__, reversed(text_ids)))[::-1]
    return prompt_ids[: len(prompt_ids) - len(after)], after
