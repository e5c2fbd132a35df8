"""Networks of width 32 with the configurations of real families, and tokenizers of the same kinds trained on texts.

The configurations name every field that the originals set; only sizes are smaller. Weights are drawn from a seed.
"""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

Made = tuple[PreTrainedTokenizerFast, PreTrainedModel]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def _bert(texts, kind=BertForMaskedLM):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=special, show_progress=False)
    core.train_from_iterator(texts, trainer)
    core.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    core.decoder = decoders.WordPiece()
    marks = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    config = BertConfig(
        **SIZES, vocab_size=core.get_vocab_size(), hidden_act="gelu", hidden_dropout_prob=0.1, type_vocab_size=2,
        attention_probs_dropout_prob=0.1, initializer_range=0.02, layer_norm_eps=1e-12, max_position_embeddings=512,
        pad_token_id=0,
    )  # fmt: skip
    return _tokenizer(core, marks), _seeded(kind, config)


def _roberta(texts, kind=RobertaForMaskedLM):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=special,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    core.train_from_iterator(texts, trainer)
    core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return _tokenizer(core, _ROBERTA_MARKS), _seeded(kind, RobertaConfig(**_roberta_like(core)))


def _xlmr(texts):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    core = Tokenizer(models.Unigram())
    core.normalizer = normalizers.NFKC()
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.train_from_iterator(
        texts,
        trainers.UnigramTrainer(vocab_size=600, special_tokens=special, unk_token="<unk>", show_progress=False),
    )
    core.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    core.decoder = decoders.Metaspace()
    return _tokenizer(core, _ROBERTA_MARKS), _seeded(XLMRobertaModel, XLMRobertaConfig(**_roberta_like(core)))


NETWORKS: Mapping[str, Callable[[list[str]], Made]] = {
    "bert": _bert,
    "bert-pooled": partial(_bert, kind=BertModel),
    "roberta": _roberta,
    "roberta-pooled": partial(_roberta, kind=RobertaModel),
    "xlmr": _xlmr,
}
_ROBERTA_MARKS = {
    "bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"
}  # fmt: skip


def _roberta_like(core):
    return {
        **SIZES, "vocab_size": core.get_vocab_size(), "max_position_embeddings": 514, "type_vocab_size": 1,
        "layer_norm_eps": 1e-5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu",
    }  # fmt: skip


def _tokenizer(core, marks):
    named = {f"{name}_token": token for name, token in marks.items()}
    return PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=512, **named)


def _seeded(kind, config):
    torch.manual_seed(1)
    return kind(config)
