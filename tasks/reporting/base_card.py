"""What an encoder's own card says about it: licence, languages, base model; from the header of its README.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from yaml import YAMLError

from bsl.storage.record import Record
from bsl.tasks.stage.progress import warn

if TYPE_CHECKING:
    from pathlib import Path

README: Final = "README.md"
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}|multilingual")


class BaseCard(Record):
    """The header of a card, as far as cards of encoders made from it repeat it."""

    licence: str | None = None
    """Id of a licence on the Hub, such as `apache-2.0`, or the name of another; None if the card states none."""
    languages: tuple[str, ...] = ()
    """ISO 639 codes, or `multilingual`."""
    base: str | None = None
    """Hub id of the model that the encoder was made from."""


NO_CARD: Final = BaseCard()


def base_card(folder: Path) -> BaseCard:
    """Read the card in an encoder's folder; an empty record if there is none, or if its header cannot be read."""
    if not (folder / README).is_file():
        return BaseCard()
    from huggingface_hub.repocard import metadata_load  # slow import

    try:
        header = metadata_load(folder / README)
    except (ValueError, OSError, YAMLError) as error:
        warn("%s: its header cannot be read (%.100s). The new card repeats nothing of it.", folder / README, error)
        return BaseCard()
    return _card(header if isinstance(header, dict) else {})


def _card(header: dict[str, Any]) -> BaseCard:
    licence = next(iter(_strings(header.get("license"))), None)
    if licence in ("other", "unknown"):
        licence = next(iter(_strings(header.get("license_name"))), None)
    languages = tuple(code for code in _strings(header.get("language")) if _LANGUAGE.fullmatch(code))
    return BaseCard(licence=licence, languages=languages, base=next(iter(_strings(header.get("base_model"))), None))


def _strings(value: object) -> list[str]:
    """Return one string or a list of strings as a list; YAML reads the code `no` as false."""
    values = value if isinstance(value, list) else [value]
    return ["no" if one is False else one for one in values if isinstance(one, str) or one is False]
