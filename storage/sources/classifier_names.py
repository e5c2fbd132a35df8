"""Names of classifiers, as `bsl classify` takes them: artifacts of the store, and folders of exported encoders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.model_folder import CLASSIFIER, CLASSIFIER_SETTINGS

if TYPE_CHECKING:
    from bsl.storage.artifacts.store import Store

ARTIFACTS: Final = ("report/", "classifier/", "checkpoint/")


def classifier_folder(name: str) -> Path | None:
    """Return the folder of the classifier in the folder of an encoder, or of an exported report or checkpoint.

    None if there is none.
    """
    from bsl.storage.artifacts.refs import ENCODER  # fsspec, which no help needs

    given = Path(name).expanduser()
    folders = (encoder / CLASSIFIER for encoder in (given, given / ENCODER))
    return next((folder for folder in folders if (folder / CLASSIFIER_SETTINGS).is_file()), None)


def no_classifier(name: str) -> SourceError:
    """Return the error of a name that is no artifact, nor a folder with a classifier."""
    found = "the folder has no such file" if Path(name).expanduser().is_dir() else "no such folder"
    return SourceError(
        f"{name}: {found} (expected the folder of an exported encoder, with {CLASSIFIER}/{CLASSIFIER_SETTINGS}). Name "
        "report/<key> of `bsl adapt --labels`, or a folder of `bsl artifacts export`."
    )


def check_classifier(name: str, store: Store) -> None:
    """Check the name of a classifier, without importing torch.

    Raises:
        ArtifactMissingError, SourceError: There is no such artifact, or no such folder.
    """
    from bsl.storage.artifacts.lookup import find

    if classifier_folder(name) is not None:
        return
    if not name.startswith(ARTIFACTS):
        raise no_classifier(name)
    find(store, name)
