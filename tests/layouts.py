"""Every layout of sentence-transformers without remote code, and the distance of our vectors from the library's."""

import json
import warnings

import numpy as np
import torch
from safetensors.torch import save
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import (
    DebertaV2Config,
    DebertaV2Model,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    MistralConfig,
    MistralModel,
    ModernBertConfig,
    ModernBertModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3Model,
    T5Config,
    T5EncoderModel,
    UMT5Config,
    UMT5EncoderModel,
    XLNetConfig,
    XLNetModel,
)

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from tests.hub.repositories import dense, files_of, model_files, sentences

TEXTS = sorted(sentences()[:24], key=len)
FP32 = {"dtype": torch.float32}
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
T5_SMALL = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "pad_token_id": 1}
SHORT = {"max_position_embeddings": 4}
NAMED = {"query": "query: ", "sts": "Instruct: find sentences of the same meaning\nQuery: "}
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


def modules(*kinds):
    return [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]


def pooled(*modes):
    return {"word_embedding_dimension": 32, "pooling_mode": list(modes)}


def layout(base, *kinds, pooling=("mean",), length=32, dims=None):
    """Return a transformer's files plus a list of modules and their settings."""
    described = {
        "modules.json": modules("Transformer", "Pooling", *kinds),
        "1_Pooling/config.json": pooling if isinstance(pooling, dict) else pooled(*pooling),
        "sentence_bert_config.json": {"max_seq_length": length, "do_lower_case": False},
    }
    if dims is not None:
        described["config_sentence_transformers.json"] = {"truncate_dim": dims}
    return {**base, **described}


def head(number, kind, settings, weights):
    files = {"config.json": settings, **weights}
    return {f"{number}_{kind}/{name}": content for name, content in files.items()}


def dense_head(number, out=16):
    tanh = "torch.nn.modules.activation.Tanh"
    settings = {"in_features": 32, "out_features": out, "bias": True, "activation_function": tanh}
    return head(number, "Dense", settings, dense(32, out))


def bert():
    files = model_files("google-bert/bert-base-uncased")
    return {name: content for name, content in files.items() if name != "pytorch_model.bin"}


def roberta():
    return dict(model_files("FacebookAI/roberta-base"))


def xlmr():
    return dict(model_files("FacebookAI/xlm-r-base"))


def network(tmp_path, model, tokenizer, dtype=torch.float32):
    folder = tmp_path / "network"
    model.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return files_of(folder)


def bpe(*, ends=True, left=True):
    """Return a decoder's tokenizer: its end token is also the padding token, with padding on the left."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<|end|>"], initial_alphabet=letters, show_progress=False
    )
    core.train_from_iterator(sentences(), trainer)
    if ends:
        core.post_processor = processors.TemplateProcessing(single="$A <|end|>", special_tokens=[("<|end|>", 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|end|>", pad_token="<|end|>", padding_side="left" if left else "right"
    )


def decoder(tmp_path, kind=Qwen3Model, config=Qwen3Config, dtype=torch.float32, **fields):
    torch.manual_seed(3)
    wide = {**SMALL, "num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 128, **fields}
    return network(tmp_path, kind(config(**wide)), bpe(), dtype)


def sentencepiece(tmp_path, kind, config, **fields):
    """Return the files of a network with the tokenizer of XLM-R."""
    torch.manual_seed(3)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(write(tmp_path / "xlmr", xlmr()))
    return network(tmp_path, kind(config(vocab_size=600, **fields)), tokenizer)


def modernbert(tmp_path):
    ends = {"pad_token_id": 1, "cls_token_id": 0, "sep_token_id": 2, "bos_token_id": 0, "eos_token_id": 2}
    return sentencepiece(tmp_path, ModernBertModel, ModernBertConfig, **SMALL, **ends, **SHORT)


def deberta(tmp_path):
    relative = {"relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]}
    own = {"pad_token_id": 1, "position_buckets": 4, **SHORT}
    return sentencepiece(tmp_path, DebertaV2Model, DebertaV2Config, **SMALL, **relative, **own)


def t5(tmp_path):
    identity = "torch.nn.modules.linear.Identity"
    settings = {"in_features": 32, "out_features": 16, "bias": False, "activation_function": identity}
    base = sentencepiece(tmp_path, T5EncoderModel, T5Config, **T5_SMALL)
    weights = {"model.safetensors": save({"linear.weight": torch.randn(16, 32)})}
    return {**layout(base, "Dense", "Normalize"), **head(2, "Dense", settings, weights)}


def gpt2(tmp_path):
    torch.manual_seed(3)
    model = GPT2Model(GPT2Config(vocab_size=500, n_positions=128, n_embd=32, n_layer=2, n_head=4))
    return network(tmp_path, model, bpe(ends=False, left=False))


def xlnet(tmp_path):
    torch.manual_seed(3)
    model = XLNetModel(XLNetConfig(vocab_size=500, d_model=32, n_layer=2, n_head=4, d_inner=64))
    return layout(network(tmp_path, model, bpe()))


def static(tmp_path):
    core = Tokenizer.from_file(str(write(tmp_path / "xlmr", xlmr()) / "tokenizer.json"))
    table = torch.randn(core.get_vocab_size(), 24, generator=torch.Generator().manual_seed(1))
    files = {"tokenizer.json": core.to_str().encode(), "model.safetensors": save({"embedding.weight": table})}
    listed = [{**modules("StaticEmbedding")[0], "path": "0_StaticEmbedding"}, modules("", "Normalize")[1]]
    return {"modules.json": listed, **{f"0_StaticEmbedding/{name}": content for name, content in files.items()}}


def prompted(default, **pooling):
    prompts = {"config_sentence_transformers.json": {"prompts": NAMED, "default_prompt_name": default}}
    return {**layout(roberta(), pooling={**pooled("mean"), **pooling}, length=96), **prompts}


def norm():
    parts = {"norm.weight": torch.rand(32), "norm.bias": torch.rand(32)}
    return head(2, "LayerNorm", {"dimension": 32}, {"model.safetensors": save(parts)})


LAYOUTS = {
    "mean, WordPiece (all-MiniLM)": lambda _: layout(bert(), "Normalize"),
    "mean, BPE (all-mpnet, roberta)": lambda _: layout(roberta()),
    "mean, SentencePiece (XLM-R)": lambda _: layout(xlmr()),
    "cls (bge)": lambda _: layout(bert(), "Normalize", pooling=("cls",)),
    "max": lambda _: layout(bert(), pooling=("max",)),
    "mean by root of length": lambda _: layout(bert(), pooling=("mean_sqrt_len_tokens",)),
    "weighted mean (SGPT)": lambda folder: layout(gpt2(folder), pooling=("weightedmean",)),
    "last token, left padding (Qwen3-Embedding)": lambda folder: layout(
        decoder(folder), "Normalize", pooling=("lasttoken",)
    ),
    "last token (Mistral, bf16 weights)": lambda folder: layout(
        decoder(folder, MistralModel, MistralConfig, torch.bfloat16), "Normalize", pooling=("lasttoken",)
    ),
    "mean over a decoder (Llama, fp16 weights)": lambda folder: layout(
        decoder(folder, LlamaModel, LlamaConfig, torch.float16)
    ),
    "several at once": lambda _: layout(bert(), pooling=MODES),
    "several at once, in an order of their own": lambda _: layout(bert(), pooling=("mean", "cls")),
    "several at once, by switches": lambda _: layout(
        bert(),
        pooling={"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True, "word_embedding_dimension": 32},
    ),
    "Dense and Normalize (LaBSE)": lambda _: {
        **layout(bert(), "Dense", "Normalize", pooling=("cls",)),
        **dense_head(2, 32),
    },
    "Dense to another width (distiluse)": lambda _: {**layout(bert(), "Dense"), **dense_head(2)},
    "LayerNorm": lambda _: {**layout(bert(), "LayerNorm"), **norm()},
    "T5's encoder, Dense without bias (sentence-t5)": t5,
    "UMT5's encoder": lambda folder: layout(sentencepiece(folder, UMT5EncoderModel, UMT5Config, **T5_SMALL)),
    "static table (static-retrieval-mrl)": static,
    "length in an old file (roberta-base-nli)": lambda _: {
        **{name: part for name, part in layout(roberta()).items() if name != "sentence_bert_config.json"},
        "sentence_roberta_config.json": {"max_seq_length": 12, "do_lower_case": False},
    },
    "a default prompt (E5 instruct)": lambda _: prompted("sts"),
    "a prompt that is not pooled (INSTRUCTOR)": lambda _: prompted("sts", include_prompt=False),
    "prompts, none by default (nomic)": lambda _: prompted(None),
    "the first dimensions alone, after Normalize (Matryoshka)": lambda _: layout(bert(), "Normalize", dims=8),
    "as many dimensions as there are, after Normalize": lambda _: layout(bert(), "Normalize", dims=32),
    "more dimensions than there are, several poolings": lambda _: layout(
        bert(), "Normalize", pooling=("cls", "mean"), dims=100
    ),
    "as many dimensions as Dense gives": lambda _: {**layout(bert(), "Dense", "Normalize", dims=16), **dense_head(2)},
    "a length beyond the positions": lambda _: layout(bert(), length=100_000),
    "a length beyond the positions, some of them unused": lambda _: layout(roberta(), length=514),
    "positions without end (XLNet)": xlnet,
    "a length beyond rotary positions, which have no table (Llama)": lambda tmp: layout(
        decoder(tmp, LlamaModel, LlamaConfig, **SHORT)
    ),
    "a length beyond rotary positions (ModernBERT)": lambda tmp: layout(modernbert(tmp)),
    "a length beyond relative positions (DeBERTa)": lambda tmp: layout(deberta(tmp)),
}


def vectors_of(peer, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peer.encode(TEXTS, batch_size=7, show_progress_bar=False, **how)


def opened(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SentenceTransformer(str(folder), device="cpu", model_kwargs=FP32, local_files_only=True)


def compared(name, tmp_path):
    """Return the width and the largest differences from the library's vectors: of the folder, and of its export."""
    folder = write(tmp_path / "model", LAYOUTS[name](tmp_path))
    encoder = SentenceEncoder.load(folder)
    ours, theirs = encoder.encode(TEXTS), vectors_of(opened(folder))
    assert ours.shape == theirs.shape
    encoder.save(tmp_path / "out")
    exported = vectors_of(opened(tmp_path / "out")), SentenceEncoder.load(tmp_path / "out").encode(TEXTS)
    return ours.shape[1], np.abs(ours - theirs).max(), max(np.abs(ours - vectors).max() for vectors in exported)
