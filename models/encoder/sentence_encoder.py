"""Sentence encoder: embed texts as vectors with a network and its tokenizer; load from and save to a folder.

Shapes: n texts, D width.
"""

from __future__ import annotations

import contextlib
import copy
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakKeyDictionary

import numpy as np

from bsl.models.encoder.config import ZERO_TOKEN
from bsl.models.encoder.layouts import Tokens
from bsl.models.encoder.texts import refuse_first_bad, texts_of
from bsl.models.errors import EncoderError, NoEmbeddingError, is_panic
from bsl.storage.filesystem.model_folder import CLASSIFIER, GRAPH_FOLDER
from bsl.storage.filesystem.values import require_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import torch
    from numpy.typing import NDArray

    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.static import Tokenizer
    from bsl.models.runtime.progress import OnProgress

CHUNK = 10_000  # texts per tokenizer call: enough for all its threads, few enough to bound memory
_FORM: Final = re.compile(rf"{CLASSIFIER}|{GRAPH_FOLDER}|static|dims-\d+")
"""Folders that an export adds to those of the encoder itself."""
# No padding: it would cost memory, and other callers may have enabled it.
_PLAIN: dict[str, Any] = {"truncation": True, "padding": False, "return_attention_mask": False, "verbose": False}
DEFAULT_PROMPT = "default"  # saved name of a prompt that is not among the folder's named prompts

_locking = threading.Lock()
_locks: WeakKeyDictionary[Tokenizer, threading.Lock] = WeakKeyDictionary()
_copying = threading.Lock()


class SentenceEncoder:
    """Maps texts to vectors: a network, its tokenizer and its prompts. Threads may share an encoder.

    Attributes:
        network: Backbone, heads and pooling; its `config` has the maximal length and the prompt in use.
        own_tokenizer: The tokenizer of `encode` and `save`. A call changes its settings, so it must not be called while
            another thread encodes; `tokenizer` is a copy for that.
        prompts: Prompts by name, as the folder lists them.
    """

    def __init__(self, network: Encoder, tokenizer: Tokenizer, prompts: Mapping[str, str] | None = None) -> None:
        self.network, self.own_tokenizer, self.prompts = network, tokenizer, dict(prompts or {})
        self._copy: Tokenizer | None = None

    @classmethod
    def load(cls, folder: str | Path, config: EncoderConfig | None = None) -> Self:
        """Load an encoder from a local folder, in fp32 and evaluation mode.

        Args:
            folder: A folder of sentence-transformers or transformers, or an ONNX graph in one.
            config: Pooling, maximal length, prompt and other settings; None for the folder's own.

        Raises:
            EncoderError: See `bsl.models.encoder.serialization.load.load_network`.
        """
        from bsl.models.encoder.serialization.load import load_network

        return cls(*load_network(Path(folder), config))

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load` and sentence-transformers read.

        Raises:
            EncoderError: The path is empty or a file; or the folder has a classifier or other forms of the encoder that
                was saved there before; or see `bsl.models.encoder.serialization.save.write_modules`.
        """
        from bsl.models.encoder.serialization.save import write_modules
        from bsl.models.encoder.serialization.settings import PROMPTS
        from bsl.models.encoder.weights import write_json

        path = Path(require_name(folder, "the folder"))
        if not folder or path.is_file():
            raise EncoderError(f"{folder!s:.200}: not a folder to save in, expected a new one. Give another path.")
        if stale := sorted(entry.name for entry in path.glob("*/") if _FORM.fullmatch(entry.name)):
            raise EncoderError(
                f"{path}: {', '.join(stale)} belong to the encoder that was saved there before. Save to a new folder, "
                "or delete this one first."
            )
        write_modules(self.network, self.own_tokenizer, path)
        names = {text: name for name, text in self.prompts.items()}
        default = names.get(self.prompt, DEFAULT_PROMPT) if self.prompt else None
        prompts = self.prompts if default is None else {**self.prompts, default: self.prompt}
        settings = {"similarity_fn_name": "cosine", "prompts": prompts, "default_prompt_name": default}
        write_json(path / PROMPTS, settings)

    @property
    def tokenizer(self) -> Tokenizer:
        """A copy of the tokenizer, safe to call beside `encode`; changes to it affect neither `encode` nor `save`."""
        with _copying:
            if self._copy is None:
                with _tokenizer_settings_kept(self.own_tokenizer):
                    self._copy = copy.deepcopy(self.own_tokenizer)
            return self._copy

    @property
    def config(self) -> EncoderConfig:
        """Pooling, maximal length, prompt and other settings."""
        return self.network.config

    @property
    def prompt(self) -> str:
        """The prompt before every text; empty for none."""
        return self.config.prompt or ""

    @property
    def width(self) -> int:
        """Width D of a vector."""
        return self.network.width

    def with_network(self, network: Encoder) -> Self:
        """Return an encoder of another network with this encoder's tokenizer and prompts."""
        return type(self)(network, self.own_tokenizer, self.prompts)

    def with_prompt(self, prompt: str) -> Self:
        """Return an encoder that puts another prompt before every text; weights are shared.

        Raises:
            EncoderError: As `Encoder.with_prompt`.
        """
        return self.with_network(self.network.with_prompt(prompt, self.own_tokenizer))

    def merged(self, trained: Self, share: float) -> Self:
        """Return a new encoder with the weights (1 − share) · self + share · trained, share in [0, 1].

        Fine-tuning often gains on its own data and loses on other data. Interpolation with the original weights
        recovers more of the loss than it gives up of the gain (WiSE-FT: Wortsman et al., 2022).

        Raises:
            EncoderError: Their weights differ in names or shapes.
        """
        first, second = self.network.state_dict(), trained.network.state_dict()
        if {name: x.shape for name, x in first.items()} != {name: x.shape for name, x in second.items()}:
            raise EncoderError(
                f"{self.config.model} and {trained.config.model}: weights differ in names or shapes, expected equal "
                "ones. Merge an encoder only with one that was trained from it."
            )
        between = copy.deepcopy(self.network)
        between.load_state_dict(
            {
                name: x.lerp(second[name].to(x), share) if x.is_floating_point() else second[name]
                for name, x in first.items()
            }
        )
        return self.with_network(between.eval())

    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """Tokenise texts with prompt and special tokens, truncated at the maximal length.

        Raises:
            EncoderError: The tokenizer has no padding token.
            NoEmbeddingError: A text is not a valid string, or has no token.
        """
        return token_ids(self.own_tokenizer, texts, self.config.length, self.prompt)

    def are_unknown(self, tokens: Tokens) -> NDArray[np.bool_]:
        """Return which texts have no more known tokens than unknown ones, (n,): vectors hardly tell them apart.

        Unknown are words of another script, for example, also if the tokenizer gives them no token. All bytes are known
        to some tokenizers, such as GPT-2's.
        """
        tokenizer = self.own_tokenizer
        unknown_id = _unknown_id(tokenizer)
        found: NDArray[np.bool_] = tokens.lengths == 0
        if unknown_id is None:
            return found
        special = [*({*tokenizer.all_special_ids} - {unknown_id})]
        text = np.repeat(np.arange(len(tokens)), tokens.lengths)  # number of each token's text
        unknown = np.bincount(text[tokens.ids == unknown_id], minlength=len(tokens))
        content = np.bincount(text[~np.isin(tokens.ids, special)], minlength=len(tokens))
        if self.prompt:
            content -= (~np.isin(token_ids(tokenizer, [self.prompt], self.config.length).ids, special)).sum()
        return found | ((unknown > 0) & (2 * unknown >= content))

    def encode(
        self,
        texts: Sequence[str],
        *,
        device: str | torch.device | None = None,
        bf16: bool = False,
        on_progress: OnProgress | None = None,
    ) -> NDArray[np.float32]:
        """Embed texts: (n, D) float32, row i belongs to text i.

        Args:
            texts: Any number of texts: a list, a tuple, or a column (NumPy, pandas, Polars, Arrow).
            device: Device to compute on, to which the network is moved; None for the network's device.
            bf16: Compute the forward pass in bf16 (about twice as fast or more; vectors differ in the third digit).
            on_progress: Called as (sentences done, sentences in total, detail).

        Raises:
            TypeError: `texts` is not a sequence or column of strings (`texts_of`).
            EncoderError: The tokenizer has no padding token.
            NoEmbeddingError: A text is not a valid string or has no token, or its vector is not finite.
        """
        tokens = self.tokenize(texts)
        return self.network.encode(tokens, device=device, bf16=bf16, on_progress=on_progress)


class CachedEncoder:
    """Maps texts to vectors (n, D) float32 with a cache: each distinct text is embedded once."""

    def __init__(self, encoder: SentenceEncoder, *, device: str) -> None:
        self._encoder, self._device = encoder, device
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `SentenceEncoder.encode`."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors.update(zip(new, self._encoder.encode(new, device=self._device), strict=True))
        return np.stack([self._vectors[text] for text in texts])


def token_ids(tokenizer: Tokenizer, texts: Sequence[str], max_length: int, prompt: str = "") -> Tokens:
    """Tokenise texts with special tokens, truncated at `max_length` tokens.

    Args:
        tokenizer: The encoder's tokenizer.
        texts: Any number of texts.
        max_length: Maximal length in tokens, special tokens included.
        prompt: Text before every text.

    Raises:
        TypeError: `texts` is not a sequence or column of strings.
        EncoderError: The tokenizer has no padding token, or fails for a text.
        NoEmbeddingError: A text is not a string, contains a lone surrogate, or has no token; a table accepts no token.
    """
    texts = texts_of(texts)
    if tokenizer.pad_token_id is None:
        raise EncoderError(
            f"the tokenizer {type(tokenizer).__name__} has no padding token. Set one (tokenizer.pad_token) and save it "
            "again."
        )
    # Word tables have a token for sentences without any known word.
    placeholder = [tokenizer.pad_token_id] if tokenizer.pad_token == ZERO_TOKEN else []
    ids: list[NDArray[np.int32]] = []
    with _tokenizer_settings_kept(tokenizer):
        for start in range(0, len(texts), CHUNK):
            chunk = texts[start : start + CHUNK]
            try:
                prompted = [prompt + text for text in chunk] if prompt else chunk
                found = tokenizer(prompted, max_length=max_length, **_PLAIN)["input_ids"]
            except BaseException as error:
                if isinstance(error, MemoryError) or not (isinstance(error, Exception) or is_panic(error)):
                    raise
                refuse_first_bad(chunk, start)
                raise EncoderError(
                    f"the tokenizer {type(tokenizer).__name__} failed for one of the texts {start} to "
                    f"{start + len(chunk) - 1} ({error!s:.200}). Check the rules in its tokenizer.json, such as "
                    "regular expressions that take too many steps."
                ) from error
            ids.extend(np.asarray(row or placeholder, dtype=np.int32) for row in found)
    tokens = Tokens.of(ids, int(tokenizer.pad_token_id))
    accepted = getattr(tokenizer, "accepts_no_token", False)
    if len(empty := np.flatnonzero(tokens.lengths == 0)) and not accepted:
        raise NoEmbeddingError(int(empty[0]), "has no token. Drop empty texts, or use a tokenizer with special tokens.")
    return tokens


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of words that a tokenizer does not know; None if it knows every text.

    Word tables have a token for texts without a known word. The tokenizer of a static table names its unknown token
    only in its rules. GPT-2's names one, which is an end of text and stands for no word.
    """
    if tokenizer.pad_token == ZERO_TOKEN:
        return int(tokenizer.pad_token_id)
    library: Any = tokenizer
    rules = getattr(library, "backend_tokenizer", None)
    name = library.unk_token or getattr(getattr(rules, "model", None), "unk_token", None)
    found: int | None = None if name is None else library.convert_tokens_to_ids(name)
    return None if found in (library.eos_token_id, library.bos_token_id, library.pad_token_id) else found


@contextlib.contextmanager
def _tokenizer_settings_kept(tokenizer: Tokenizer) -> Iterator[None]:
    """Restore a tokenizer's truncation and padding settings, which a call changes and saving would write.

    A lock admits one thread at a time: otherwise another thread's texts would be truncated by this call's settings.
    """
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    with _locking:  # the lock is not an attribute, since tokenizers are copied and saved
        lock = _locks.setdefault(tokenizer, threading.Lock())
    with lock:
        before = None if backend is None else (backend.truncation, backend.padding)
        try:
            yield
        finally:
            if before is not None:
                _set(before[0], backend.enable_truncation, backend.no_truncation)
                _set(before[1], backend.enable_padding, backend.no_padding)


def _set(options: dict[str, Any] | None, enable: Callable[..., None], disable: Callable[[], None]) -> None:
    if options is None:
        disable()
    else:
        enable(**options)
