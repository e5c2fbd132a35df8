"""Load a sentence encoder from a folder, the Hub, the artifact store or the package, and encode texts."""

from __future__ import annotations

import os
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import torch

from bsl.imports import importing
from bsl.models.encoder import sentence_encoder
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.prompts import check_role, role_prompt
from bsl.models.encoder.texts import texts_of
from bsl.models.runtime.rows import unit_vectors
from bsl.storage.assets.embedded import EMBEDDED, embedded_path
from bsl.storage.filesystem.values import require_name
from bsl.vectors import as_vectors, progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from pydantic import JsonValue

    from bsl.models.encoder.prompts import Role
    from bsl.models.runtime.progress import OnProgress


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
        store: str | Path | None = None,
        device: str | torch.device | None = None,
        **reading: JsonValue,
    ) -> Self:
        """Load an encoder, in fp32 and evaluation mode.

        Args:
            folder: A folder of sentence-transformers or transformers, an ONNX graph in one, `embedded:<name>`, a Hub
                id, `checkpoint/<key>` or `report/<key>` of the store, or a file of word vectors.
            config: Complete encoder settings.
            revision: Commit, tag or branch of a Hub id.
            store: Store of `checkpoint/<key>` and `report/<key>`; None for BSL_STORE.
            device: Device of the network; None for the CPU.
            **reading: Single encoder settings, such as `pooling="cls"`, `max_length=128`, `prompt="query: "`; the
                folder provides the others. Cannot be combined with `config`.

        Raises:
            TypeError: Both `config` and single settings are given.
            ValueError: A setting is unknown or has an invalid value, or `revision` is given for another name than a
                Hub id.
            SourceError, AssetError, ArtifactMissingError: The encoder does not exist.
            EncoderError: The encoder cannot be read, or has modules that this project cannot compute.
            DeviceError: This machine has no such device.
        """
        if reading:
            if config is not None:
                raise TypeError(f"config and {', '.join(reading)}: give only one of them")
            with importing():
                from bsl.flows.config import override

            config = override(EncoderConfig(model=str(folder)), reading)
        encoder = super().load(_folder(folder, revision, store), config)
        if device is not None:
            encoder.network.to(_found(device))
        return encoder

    @overload
    def encode(
        self,
        texts: str | Sequence[str],
        prompt_name: str | None = ...,
        prompt: str | None = ...,
        *,
        batch_size: int | None = ...,
        show_progress_bar: bool | None = ...,
        convert_to_numpy: bool = ...,
        convert_to_tensor: Literal[True],
        normalize_embeddings: bool = ...,
        batch_tokens: int | None = ...,
        device: str | torch.device | None = ...,
        bf16: bool = ...,
        on_progress: OnProgress | None = ...,
    ) -> torch.Tensor: ...

    @overload
    def encode(
        self,
        texts: str | Sequence[str],
        prompt_name: str | None = ...,
        prompt: str | None = ...,
        *,
        batch_size: int | None = ...,
        show_progress_bar: bool | None = ...,
        convert_to_numpy: bool = ...,
        convert_to_tensor: Literal[False] = ...,
        normalize_embeddings: bool = ...,
        batch_tokens: int | None = ...,
        device: str | torch.device | None = ...,
        bf16: bool = ...,
        on_progress: OnProgress | None = ...,
    ) -> NDArray[np.float32]: ...

    def encode(
        self,
        texts: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        batch_tokens: int | None = None,
        device: str | torch.device | None = None,
        bf16: bool = False,
        on_progress: OnProgress | None = None,
    ) -> NDArray[np.float32] | torch.Tensor:
        """Embed texts: (n, D) float32, row i belongs to text i; one text gives (D,).

        The first arguments are named as in sentence-transformers.

        Args:
            texts: One text, or any number of texts: a list, a tuple, or a column (NumPy, pandas, Polars, Arrow).
            prompt_name: Name of one of `prompts`, which is put before every text instead of the default prompt.
            prompt: The prompt itself; "" for none.
            batch_size: Texts of the greatest length per forward pass, more of shorter ones; None for the device's
                default, which is usually fastest.
            show_progress_bar: Show the number of encoded texts.
            convert_to_numpy: Return an array; without it, the tensor of `convert_to_tensor`.
            convert_to_tensor: Return a tensor on the device of the network.
            normalize_embeddings: Divide each vector by its length.
            batch_tokens: Padded tokens per forward pass, instead of `batch_size`.
            device: Device to compute on, to which the network is moved; None for the network's device.
            bf16: Compute the forward pass in bf16 (about twice as fast or more; vectors differ in the third digit).
            on_progress: Called as (sentences done, sentences in total, detail), instead of a bar.

        Raises:
            TypeError: `texts` is not a text, or a sequence or column of texts, or `prompt` is not a text.
            ValueError: `batch_size` or `batch_tokens` is no whole number of at least 1, no prompt has this name, or
                name and prompt are given.
            EncoderError: The tokenizer has no padding token.
            NoEmbeddingError: A text is not a valid string or has no token, or its vector is not finite.
            DeviceError: This machine has no such device.
        """
        for argument, size in (("batch_size", batch_size), ("batch_tokens", batch_tokens)):
            if size is not None and not (isinstance(size, Integral) and int(size) >= 1):
                raise ValueError(f"{argument} is {size!r}, expected a whole number of at least 1, or None")
        device = None if device is None else _found(device)
        asked = self._asked(prompt_name, prompt)
        tokens = asked.tokenize([texts] if isinstance(texts, str) else texts)
        if batch_size is not None and batch_tokens is None:
            batch_tokens = batch_size * max(map(int, tokens.lengths), default=1)
        with progress_bar(show_progress_bar) as bar:
            report = on_progress or bar
            vectors = asked.network.encode(
                tokens, batch_tokens=batch_tokens, device=device, bf16=bf16, on_progress=report
            )
        vectors = unit_vectors(vectors) if normalize_embeddings else vectors
        found = vectors[0] if isinstance(texts, str) else vectors
        if convert_to_numpy and not convert_to_tensor:
            return found
        return torch.from_numpy(found).to(self.network.device)

    def encode_query(self, texts: str | Sequence[str], **how: Any) -> Any:  # noqa: ANN401 - as `encode`
        """Embed queries of a search: `encode` with the prompt `query`.

        An encoder without prompts for queries and documents puts its default prompt before both, unlike
        sentence-transformers, which puts none.

        Raises:
            EncoderError: The encoder has other modules for queries (a Router), which are not loaded.
        """
        return self._encode_role(texts, "query", how)

    def encode_document(self, texts: str | Sequence[str], **how: Any) -> Any:  # noqa: ANN401 - as `encode`
        """Embed texts to search in: as `encode_query`, with the prompt `document`, else `passage`, else `corpus`."""
        return self._encode_role(texts, "document", how)

    def _encode_role(self, texts: str | Sequence[str], role: Role, how: dict[str, Any]) -> Any:  # noqa: ANN401
        check_role(self.config.model, self.network.roles_not_loaded, role)
        if how.get("prompt") is None and how.get("prompt_name") is None:
            how["prompt"] = role_prompt(self.prompts, role)
        return self.encode(texts, **how)

    def _asked(self, name: str | None, prompt: str | None) -> Self:
        if not isinstance(prompt, str | None):
            raise TypeError(f"prompt is {prompt!r}, expected a text")
        if name is not None:
            if prompt is not None:
                raise ValueError(f"prompt_name {name!r} and prompt {prompt!r}: give only one of them")
            if name not in self.prompts:
                known = ", ".join(self.prompts) or "it has none"
                raise ValueError(f"prompt_name is {name!r}, expected one of the encoder's prompts ({known})")
            prompt = self.prompts[name]
        return self if prompt is None or prompt == self.prompt else self.with_prompt(prompt)

    def similarity(self, first: Sequence[str] | ArrayLike, second: Sequence[str] | ArrayLike) -> NDArray[np.float32]:
        """Return the cosine similarity of each pair, (n of first, n of second), in [-1, 1].

        Args:
            first: Texts, or their vectors: an array, a tensor, or a list of vectors. One text or vector is n = 1.
            second: The same; one may be texts and the other vectors.

        Raises:
            TypeError, ValueError, NoEmbeddingError: As for `encode`, or vectors have another width than the encoder.
        """
        cosines: NDArray[np.float32] = self._units(first) @ self._units(second).T
        return cosines.clip(-1, 1)  # sums of squares may exceed 1 by rounding

    def _units(self, given: object) -> NDArray[np.float32]:
        vectors = as_vectors(given, self.width)
        if vectors is None:
            vectors = self.encode([given] if isinstance(given, str) else texts_of(given))
        return unit_vectors(vectors)


def _found(device: str | torch.device) -> str:
    """Return the name of a device, after checking that this machine has it."""
    if str(device) == "cpu":
        return "cpu"
    with importing():
        from bsl.tasks.stage.device import checked
    return checked(device)


def _folder(given: str | Path, revision: str | None, store: str | Path | None) -> Path:
    """Return the folder of an encoder; only a name that is not a local path is looked up in the store and the Hub."""
    if not require_name(given, "the encoder"):
        raise ValueError("the encoder's name is empty, expected a folder, a name on the Hub or embedded:NAME")
    path = Path(os.path.expanduser(given))  # noqa: PTH111 - Path's raises an error for an unknown user
    name = given if isinstance(given, str) else str(path.absolute())  # a Path is not a Hub id
    if revision is None and name.startswith(EMBEDDED):
        return embedded_path(name.removeprefix(EMBEDDED))
    if revision is None and (path.is_dir() or (path.suffix == ".onnx" and path.exists())):
        return path
    with importing():
        from bsl.flows.run_context import run_context_of
        from bsl.storage.sources.model_sources import check_revision
        from bsl.tasks.embedding.encoders import encoder_folder, find_encoder

    check_revision(name, revision)
    context = run_context_of({"store": store and str(store)})
    return encoder_folder(context.open_store(), find_encoder(context, name, revision))
