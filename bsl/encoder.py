"""Load a sentence encoder from a folder, the Hub, the artifact store or the package, and encode texts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from models.encoder import sentence_encoder
from models.encoder.config import EncoderConfig
from storage.assets.embedded import EMBEDDED, embedded_path

if TYPE_CHECKING:
    from pydantic import JsonValue


class SentenceEncoder(sentence_encoder.SentenceEncoder):
    """Sentence encoder: a network, its tokenizer, and optional prompts.

    Several threads may share an encoder.

    Attributes:
        network: Backbone, heads and pooling.
        tokenizer: Tokenizer of the network.
        prompts: Prompt name → prefix of a text, as saved in the encoder's folder.

    Example:
        >>> encoder = SentenceEncoder.load("embedded:mini-sentence")
        >>> encoder.encode(["A dog runs.", "A dog is running."]).shape
        (2, 384)
        >>> cosines = encoder.similarity(["A dog runs."], ["A dog is running.", "Prices fell."])[0]
        >>> bool(cosines[0] > cosines[1])
        True
    """

    @classmethod
    def load(
        cls,
        folder: str | Path,
        config: EncoderConfig | None = None,
        *,
        revision: str | None = None,
        **reading: JsonValue,
    ) -> Self:
        """Load an encoder, in fp32 and evaluation mode.

        Args:
            folder: A folder of sentence-transformers or transformers, an ONNX graph in one, `embedded:<name>`, a Hub
                id, `checkpoint/<key>` or `report/<key>` of the store, or a file of word vectors.
            config: Complete encoder settings.
            revision: Commit, tag or branch of a Hub id.
            **reading: Single encoder settings, such as `pooling="cls"`, `max_length=128`, `prompt="query: "`; the
                folder provides the others. Cannot be combined with `config`.

        Raises:
            TypeError: Both `config` and single settings are given.
            ValueError: A setting is unknown or has an invalid value, or `revision` is given for another name than a
                Hub id.
            SourceError, AssetError, ArtifactMissingError: The encoder does not exist.
            EncoderError: The encoder cannot be read, or has modules that this project cannot compute.
        """
        if reading:
            if config is not None:
                raise TypeError(f"config and {', '.join(reading)}: give only one of them")
            from flows.config import override

            config = override(EncoderConfig(model=str(folder)), reading)
        return super().load(_folder(folder, revision), config)


def _folder(given: str | Path, revision: str | None) -> Path:
    """Return the folder of an encoder; only a name that is not a local path is looked up in the store and the Hub."""
    path = Path(os.path.expanduser(given))  # noqa: PTH111 - Path's raises an error for an unknown user
    name = str(path.absolute()) if isinstance(given, Path) else given  # a Path is not a Hub id
    if revision is None and name.startswith(EMBEDDED):
        return embedded_path(name.removeprefix(EMBEDDED))
    if revision is None and (path.is_dir() or (path.suffix == ".onnx" and path.exists())):
        return path
    from flows.run_context import run_context_of
    from storage.sources.model_sources import check_revision
    from tasks.embedding.encoders import encoder_folder, find_encoder

    check_revision(name, revision)
    context = run_context_of()
    return encoder_folder(context.open_store(), find_encoder(context, name, revision))
