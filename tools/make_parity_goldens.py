#!/usr/bin/env python3
"""Writes the small random checkpoints of tests/data/checkpoints and what transformers computes with them.

    tools/make_parity_goldens.py            # from the root of the repository; needs torch, transformers, safetensors

Each checkpoint exercises another corner: head_dim unlike hidden/heads, grouped queries, biases, tied and untied heads,
Llama 3.1 RoPE scaling, both spellings of RoPE settings, sharding, all three weight types.  The logits are computed in
float32 on the CPU from the folder as written (weights widened), for one sequence of tokens, and so are the inputs of
every layer for the last of them; tests/test_model_parity.c compares.  Weights are drawn wide enough for attention and activations to be far from linear.
"""
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

ROOT = Path(__file__).resolve().parent.parent / "tests" / "data"
TOKENS, INPUTS = 40, 6
LLAMA3 = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}

# name: configuration, weight type, largest shard, what to change in the config.json that transformers wrote
CASES = {
    "qwen3-bf16": (Qwen3Config(vocab_size=256, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                               num_attention_heads=4, num_key_value_heads=2, head_dim=24, tie_word_embeddings=True,
                               max_position_embeddings=512, eos_token_id=[3, 5]), torch.bfloat16, "1GB", {}),
    "qwen3-bias-f32": (Qwen3Config(vocab_size=97, hidden_size=36, intermediate_size=50, num_hidden_layers=1,
                                   num_attention_heads=3, num_key_value_heads=1, head_dim=16, attention_bias=True,
                                   max_position_embeddings=128, rms_norm_eps=1e-5, eos_token_id=3),
                       torch.float32, "1GB", {"rope_parameters": None, "rope_theta": 1e6, "rope_scaling": None}),
    "qwen2-f16": (Qwen2Config(vocab_size=203, hidden_size=48, intermediate_size=77, num_hidden_layers=3,
                              num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=256,
                              eos_token_id=7), torch.float16, "1GB", {"rope_parameters": None, "rope_theta": 1e6}),
    "llama3-f32": (LlamaConfig(vocab_size=131, hidden_size=40, intermediate_size=64, num_hidden_layers=2,
                               num_attention_heads=4, num_key_value_heads=1, attention_bias=True, mlp_bias=True,
                               max_position_embeddings=64), torch.float32, "1GB",
                   {"rope_parameters": None, "rope_theta": 5e5, "rope_scaling": {"type": "llama3", **LLAMA3}}),
    "llama-sharded-bf16": (LlamaConfig(vocab_size=192, hidden_size=64, intermediate_size=90, num_hidden_layers=2,
                                       num_attention_heads=8, num_key_value_heads=4, tie_word_embeddings=True,
                                       max_position_embeddings=300,
                                       rope_parameters={"rope_type": "llama3", "rope_theta": 1e4, **LLAMA3}),
                           torch.bfloat16, "60KB", {}),
}


def randomise(model, generator):
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("bias"):
            value = 0.3 * noise
        elif parameter.dim() == 1:  # the gain of a norm
            value = 1 + 0.3 * noise
        elif "embed" in name:
            value = noise
        else:
            value = noise * (1.5 / parameter.shape[1] ** 0.5)
        parameter.data.copy_(value)


def write(name, index):
    config, dtype, shard, changes = CASES[name]
    generator = torch.Generator().manual_seed(1000 + index)
    folder = ROOT / "checkpoints" / name
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    randomise(model, generator)
    model.tie_weights()
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    path = folder / "config.json"
    written = json.loads(path.read_text())
    for key, value in changes.items():
        written[key] = value
        if value is None:
            del written[key]
    for key in ("transformers_version", "use_cache", "initializer_range", "attention_dropout", "layer_types"):
        written.pop(key, None)
    path.write_text(json.dumps(written, indent=2) + "\n")

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokens = torch.randint(0, config.vocab_size, (1, TOKENS), generator=generator)
    with torch.no_grad():
        result = model(tokens, output_hidden_states=True)
    logits = result.logits[0].float().contiguous()
    # Inputs of every layer; the last of these states is the output of the final norm.  The last tokens say enough.
    inputs = torch.stack([state[0, -INPUTS:] for state in result.hidden_states[:-1]]).float().contiguous()
    (ROOT / "parity").mkdir(exist_ok=True)
    save_file({"tokens": tokens[0].int().contiguous(), "logits": logits, "inputs": inputs},
              ROOT / "parity" / f"{name}.safetensors")
    for file in [*folder.iterdir(), ROOT / "parity" / f"{name}.safetensors"]:
        file.chmod(0o644)
    print(f"{name}: logits {tuple(logits.shape)} within {logits.abs().max():.2f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for i, case in enumerate(CASES):
        write(case, i)
