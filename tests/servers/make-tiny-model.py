"""Creates one tiny Llama model with known answers: FOLDER/tiny.gguf, and FOLDER/hf for transformers.

The weights are a table. The embedding of a token is one-hot, the only layer adds nothing, and the output matrix has the
logit of every next token for every current one, so each answer is a chain of tokens and greedy decoding always takes the same
one. Which chain starts depends on the last token of the prompt, and the chat template chooses that one:

- if the last message is "Count forever.": " tick tock" without end
- if tools are declared and the last message is the user's: a call of get_weather
- otherwise: one sentence

Under a grammar, which forbids the tokens of the chain, the byte tokens prefer the shortest JSON.

The layer is wide, so that a token takes some milliseconds and an answer can be interrupted.
"""

import json
import math
import os
import sys

import gguf
import numpy
from safetensors.numpy import save_file

CONTEXT = 2048
FEED_FORWARD = 16384
HEAD = 64
EPSILON = 1e-6

END, START, TURN, CALL, FOREVER = "<|im_end|>", "<|im_start|>assistant\n", "<|im_start|>", "<|call|>", "<|forever|>"
SENTENCE = "Tiny models answer every question with these same dozen plain and honest words."
WEATHER = '\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'

# The first token of each chain is the last token of a prompt.
CHAINS = [
    [START, *[word if i == 0 else " " + word for i, word in enumerate(SENTENCE.split())], END],
    [CALL, "<tool_call>", WEATHER, "</tool_call>", END],
    [FOREVER, " tick", " tock", " tick"],
]
CONTROL = {END, START, TURN, CALL, FOREVER}

TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- 'Functions:\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
{{- '\\n</tools>\\nTo call one, answer:\\n<tool_call>\\n{"name": NAME, "arguments": OBJECT}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role != 'system' or not tools or not loop.first %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{%- if call.function %}{%- set call = call.function %}{%- endif %}
{{- '\\n<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}
{%- if call.arguments is string %}{{- call.arguments }}{%- else %}{{- call.arguments | tojson }}{%- endif %}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if messages[-1].role == 'user' %}
{%- if messages[-1].content == 'Count forever.' %}{{- '<|forever|>' }}
{%- elif tools %}{{- '<|call|>' }}
{%- endif %}
{%- endif %}
{%- endif %}"""


def byte_characters():
    """How GPT-2 writes each byte as one visible character."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {**{byte: chr(byte) for byte in visible}, **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


def vocabulary():
    """The 256 bytes, then every token of a chain, filled up to a multiple of the size of an attention head."""
    characters = byte_characters()
    tokens = [characters[byte] for byte in range(256)]
    for token in [TURN, *(token for chain in CHAINS for token in chain)]:
        if token not in tokens:
            tokens.append(token)
    while len(tokens) % HEAD:
        tokens.append(f"<|unused{len(tokens)}|>")
    return tokens


def logits(tokens):
    """The logit of each next token (row) for each current one (column)."""
    ids = {token: i for i, token in enumerate(tokens)}
    table = numpy.full((len(tokens), len(tokens)), -40.0, dtype=numpy.float32)
    # If a grammar forbids the chain, prefer the ends of JSON values to digits, and digits to letters.
    for byte in range(32, 127):
        table[byte, :] = -20 - byte / 1000
    for character, logit in {'"': -10, "}": -11, "]": -11, ":": -12, ",": -12, "{": -13, "[": -14}.items():
        table[ord(character), :] = logit
    for digit in range(10):
        table[ord("0") + digit, :] = -15 - digit / 1000
    for closing in "}]":
        table[ids[END], ord(closing)] = 0
    for chain in CHAINS:
        for current, following in zip(chain, chain[1:]):
            table[ids[following], ids[current]] = 0
    return table


def write_gguf(path, tokens, embedding, output):
    size = len(tokens)
    ids = {token: i for i, token in enumerate(tokens)}
    kinds = [gguf.TokenType.NORMAL] * 256 + [
        gguf.TokenType.CONTROL if token in CONTROL or token.startswith("<|unused") else gguf.TokenType.USER_DEFINED
        for token in tokens[256:]
    ]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(size)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(size // HEAD)
    writer.add_head_count_kv(size // HEAD)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_dimension_count(HEAD)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_vocab_size(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([int(kind) for kind in kinds])
    # The list of merges must not be empty. No text in these tests contains two exclamation marks.
    writer.add_token_merges(["! !"])
    writer.add_eos_token_id(ids[END])
    writer.add_bos_token_id(ids[END])
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", numpy.ones(size, numpy.float32))
    square, wide = (size, size), (FEED_FORWARD, size)
    shapes = {"attn_q": square, "attn_k": square, "attn_v": square, "attn_output": square}
    shapes |= {"ffn_gate": wide, "ffn_up": wide, "ffn_down": (size, FEED_FORWARD)}
    for name, shape in shapes.items():
        writer.add_tensor(f"blk.0.{name}.weight", numpy.zeros(shape, numpy.float16))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", numpy.ones(size, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_hf(folder, tokens, embedding, output):
    size = len(tokens)
    ids = {token: i for i, token in enumerate(tokens)}
    os.makedirs(folder, exist_ok=True)
    square, wide = (size, size), (FEED_FORWARD, size)
    shapes = {f"self_attn.{name}_proj": square for name in "qkvo"}
    shapes |= {"mlp.gate_proj": wide, "mlp.up_proj": wide, "mlp.down_proj": (size, FEED_FORWARD)}
    tensors = {f"model.layers.0.{name}.weight": numpy.zeros(shape, numpy.float32) for name, shape in shapes.items()}
    for name in ("layers.0.input_layernorm", "layers.0.post_attention_layernorm", "norm"):
        tensors[f"model.{name}.weight"] = numpy.ones(size, numpy.float32)
    tensors |= {"model.embed_tokens.weight": embedding, "lm_head.weight": output}
    save_file(tensors, f"{folder}/model.safetensors", metadata={"format": "pt"})
    ends = {"bos_token_id": ids[END], "eos_token_id": ids[END], "pad_token_id": ids[END]}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": 1,
        "num_attention_heads": size // HEAD,
        "num_key_value_heads": size // HEAD,
        "head_dim": HEAD,
        "vocab_size": size,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPSILON,
        "tie_word_embeddings": False,
        "dtype": "float32",
        "hidden_act": "silu",
        **ends,
    }
    added = [
        {
            "id": i,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": token in CONTROL or token.startswith("<|unused"),
        }
        for i, token in enumerate(tokens)
        if i >= 256
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: i for i, token in enumerate(tokens[:256])},
            "merges": [],
        },
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
    }
    files = {
        "config": config,
        "generation_config": {**ends, "do_sample": False},
        "tokenizer": tokenizer,
        "tokenizer_config": tokenizer_config,
    }
    for name, content in files.items():
        with open(f"{folder}/{name}.json", "w") as file:
            json.dump(content, file)
    with open(f"{folder}/chat_template.jinja", "w") as file:
        file.write(TEMPLATE)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    tokens = vocabulary()
    size = len(tokens)
    embedding = numpy.eye(size, dtype=numpy.float32)
    # The norm before the output scales a one-hot vector by the root of its length.
    output = logits(tokens) / numpy.float32(math.sqrt(size))
    write_gguf(f"{folder}/tiny.gguf", tokens, embedding, output)
    write_hf(f"{folder}/hf", tokens, embedding, output)


main()
