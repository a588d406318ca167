#!/usr/bin/env python3
"""Trains the bundled models: models/tiny-qwen3 and its draft, models/tiny-qwen3-draft.

The text is the King James Bible as Debian's `bible` command prints it (public domain), one document a chapter; every
40th chapter is held out.  Stages, each skipped when its result is already in the work folder: tokenizer, target
(next-token loss), samples (text written by the target), draft (distilled from the target on both texts), folders.
Training is bounded by minutes, not steps, and continues from its last checkpoint; seeds are fixed, but since the
schedule follows the clock two runs do not give the same bits.

    apt install bible-kjv && pip install -r tools/requirements.txt
    tools/train_tiny.py --minutes 40 --draft-minutes 20 --work build/tiny --out models
"""
import argparse
import json
import math
import os
import re
import subprocess
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import Qwen3Config, Qwen3ForCausalLM

VOCAB = 2048
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]  # ids 0, 1, 2; the first ends every document
WINDOW = 256                                               # training length in tokens, cut anywhere in the text
ROPE_THETA = 10000.0
HELD_OUT_EVERY = 40                                        # chapters
QWEN2_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")

# heads * head_dim differs from hidden_size on purpose: a loader that confuses the two fails at once.
TARGET = dict(hidden_size=192, intermediate_size=512, num_hidden_layers=8, num_attention_heads=6,
              num_key_value_heads=2, head_dim=48)
DRAFT = dict(hidden_size=128, intermediate_size=320, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=48)


# ---- text

def read_chapters(path):
    """The chapters in order, verses joined by spaces.  Input: lines such as `Ge1:1 In the beginning ...`."""
    raw = Path(path).read_text() if path else subprocess.run(
        ["bible", "-f", "gen1:1-rev22:21"], check=True, capture_output=True, text=True).stdout
    chapters = {}
    for line in raw.splitlines():
        name, verse = re.fullmatch(r"([1-3]?[A-Za-z]+\d+):\d+ (.*)", line).groups()
        chapters.setdefault(name, []).append(verse.strip())
    return {name: " ".join(verses) for name, verses in chapters.items()}


def split_chapters(chapters):
    """(training, held-out) lists of (name, text)."""
    held = [c for i, c in enumerate(chapters.items()) if i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1]
    train = [c for i, c in enumerate(chapters.items()) if i % HELD_OUT_EVERY != HELD_OUT_EVERY - 1]
    return train, held


def train_tokenizer(texts, path):
    """Byte-level BPE of the Qwen2 kind, learnt from the training text."""
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(texts, trainer)
    assert tok.get_vocab_size() == VOCAB
    tok.save(str(path))


def encode(tok, documents):
    """One long tensor: each document followed by <|endoftext|>."""
    ids = []
    for encoding in tok.encode_batch([text for _, text in documents]):
        ids += encoding.ids + [0]
    return torch.tensor(ids)


def windows(stream, count, generator):
    starts = torch.randint(len(stream) - WINDOW - 1, (count,), generator=generator)
    return torch.stack([stream[s:s + WINDOW + 1] for s in starts])


# ---- models

def new_model(shape, seed):
    torch.manual_seed(seed)
    config = Qwen3Config(vocab_size=VOCAB, max_position_embeddings=4096, tie_word_embeddings=True, rms_norm_eps=1e-6,
                         rope_theta=ROPE_THETA, bos_token_id=None, eos_token_id=0, pad_token_id=0,
                         initializer_range=0.02, use_cache=False, **shape)
    config._attn_implementation = "eager"  # faster than the fused CPU kernel at this size, backwards above all
    return Qwen3ForCausalLM(config)


def add_dropout(model, p):
    """Residual dropout, which Qwen3 itself does not have; active in train() only and never saved."""
    for layer in model.model.layers:
        for block in (layer.self_attn.o_proj, layer.mlp.down_proj):
            block.register_forward_hook(lambda module, _, out: F.dropout(out, p, module.training))


def logits_of(model, ids):
    with torch.autocast("cpu", torch.bfloat16):
        return model(input_ids=ids).logits.float()


@torch.no_grad()
def held_out_loss(model, stream, text_bytes):
    """(nats per token, bits per byte) over the whole held-out stream, every window scored after its first half."""
    model.eval()
    total, counted, half = 0.0, 0, WINDOW // 2
    for begin in range(0, len(stream) - 1, half):
        first = max(0, begin - half)
        piece = stream[first:begin + half + 1]
        logits = logits_of(model, piece[None, :-1])[0, begin - first:]
        total += F.cross_entropy(logits, piece[1 + begin - first:], reduction="sum").item()
        counted += len(logits)
    model.train()
    return total / counted, total / text_bytes / math.log(2)


class Clock:
    """Fraction of the time budget used, over all the runs that shared a checkpoint."""

    def __init__(self, minutes, used):
        self.budget, self.start = 60.0 * minutes, time.monotonic() - used

    def used(self):
        return time.monotonic() - self.start

    def progress(self):
        return self.used() / self.budget if self.budget > 0 else 1.0


def optimise(model, loss_of, checkpoint, minutes, peak_lr, report, every=500):
    """AdamW until the budget is used: linear warm-up over 2 % of it, cosine to 2 % of the peak."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=peak_lr, betas=(0.9, 0.98), eps=1e-9, fused=True)
    step, clock = 0, Clock(minutes, 0.0)
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        step, clock = state["step"], Clock(minutes, state["used"])

    def save():
        temporary = checkpoint.with_suffix(".new")
        torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step,
                    "used": clock.used()}, temporary)
        os.replace(temporary, checkpoint)

    model.train()
    saved = clock.used()
    while (progress := clock.progress()) < 1.0:
        lr = peak_lr * min(progress / 0.02, 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimiser.param_groups:
            group["lr"] = max(lr, 0.01 * peak_lr)
        loss = loss_of(model, step)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % every == 0:
            print(f"{checkpoint.stem}: step {step}, {clock.used() / 60:.1f} min, loss {loss.item():.3f}, "
                  f"{report(model)}", flush=True)
        if clock.used() - saved > 120:
            save()
            saved = clock.used()
    save()
    return step


# ---- stages

def train_target(model, stream, args, report):
    def loss_of(model, step):
        batch = windows(stream, args.batch, torch.Generator().manual_seed(step))
        logits = logits_of(model, batch[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    return optimise(model, loss_of, args.work / "target.pt", args.minutes, 2e-3, report)


@torch.no_grad()
def sample_texts(model, stream, path, rounds, generator):
    """Windows written by the target itself after 32 tokens of training text, half greedily and half at temperature
    0.8: the contexts in which a draft is asked, so the ones on which it must agree."""
    model.eval()
    model.generation_config.eos_token_id = None  # write on over the end of a document, as the training text does
    out = []
    for i in range(rounds):
        prompts = windows(stream, 64, generator)[:, :32]
        torch.manual_seed(1000 + i)
        with torch.autocast("cpu", torch.bfloat16):
            manner = dict(do_sample=True, temperature=0.8, top_k=0) if i % 2 else dict(do_sample=False)
            text = model.generate(prompts, attention_mask=torch.ones_like(prompts), use_cache=True,
                                  max_new_tokens=WINDOW - 31, pad_token_id=0, **manner)
        out.append(text.short())
        if i % 10 == 0:
            print(f"samples: round {i} of {rounds}", flush=True)
    torch.save(torch.cat(out), path)


def train_draft(model, target, stream, samples, args, report):
    """Minimises KL(target || draft) on half training text, half text written by the target."""
    target.eval()

    def loss_of(model, step):
        generator = torch.Generator().manual_seed(step)
        picked = torch.randint(len(samples), (args.batch // 2,), generator=generator)
        ids = torch.cat([windows(stream, args.batch // 2, generator), samples[picked].long()])[:, :-1]
        with torch.no_grad():
            teacher = logits_of(target, ids).log_softmax(-1).flatten(0, 1)
        student = logits_of(model, ids).log_softmax(-1).flatten(0, 1)
        return F.kl_div(student, teacher, reduction="batchmean", log_target=True)

    return optimise(model, loss_of, args.work / "draft.pt", args.draft_minutes, 3e-3, report)


def write_folder(model, tokenizer_path, folder):
    """A Hugging Face folder with bf16 weights; `model` itself is rounded, so what is evaluated is what is on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    model.bfloat16().save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    config = json.loads((folder / "config.json").read_text())
    for key in ("transformers_version", "layer_types", "rope_parameters", "dtype"):  # back to the form older tools read
        config.pop(key, None)
    config.update(rope_scaling=None, rope_theta=ROPE_THETA, torch_dtype="bfloat16", use_cache=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(
        {"do_sample": False, "eos_token_id": [0, 2], "pad_token_id": 0}, indent=2) + "\n")
    (folder / "tokenizer.json").write_bytes(tokenizer_path.read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": False, "bos_token": None, "unk_token": None,
         "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "model_max_length": 4096,
         "additional_special_tokens": SPECIAL[1:], "clean_up_tokenization_spaces": False,
         "added_tokens_decoder": {str(i): {"content": s, "lstrip": False, "normalized": False, "rstrip": False,
                                           "single_word": False, "special": True} for i, s in enumerate(SPECIAL)},
         }, indent=2) + "\n")
    model.float()


def write_prompts(held, path, count=20, words=25):
    """The beginning of a sentence inside each of `count` held-out chapters, in the MT-bench form."""
    with open(path, "w") as out:
        for i in range(count):
            name, text = held[i * len(held) // count]
            sentences = re.split(r"(?<=[.?]) ", text)
            begin = sentences[len(sentences) // 3:]
            turn = " ".join(" ".join(begin).split(" ")[:words])
            out.write(json.dumps({"question_id": i + 1, "category": "heldout", "turns": [turn]}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", help="verses, one a line, as `bible -f gen1:1-rev22:21` prints (default: run it)")
    parser.add_argument("--minutes", type=float, default=40, help="for the target (default 40)")
    parser.add_argument("--draft-minutes", type=float, default=20, help="for the draft (default 20)")
    parser.add_argument("--batch", type=int, default=8, help=f"windows of {WINDOW} tokens a step (default 8)")
    parser.add_argument("--sample-rounds", type=int, default=32, help="rounds of 64 sampled windows (default 32)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("build/tiny"), help="checkpoints (default build/tiny)")
    parser.add_argument("--out", type=Path, default=Path("models"), help="where the two folders go (default models)")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.work.mkdir(parents=True, exist_ok=True)

    train, held = split_chapters(read_chapters(args.text))
    tokenizer_path = args.work / "tokenizer.json"
    if not tokenizer_path.exists():
        train_tokenizer([text for _, text in train], tokenizer_path)
    tok = Tokenizer.from_file(str(tokenizer_path))
    stream, held_stream = encode(tok, train), encode(tok, held)
    held_bytes = sum(len(text.encode()) for _, text in held)
    print(f"text: {len(train)} chapters, {len(stream)} tokens to train on; {len(held)} chapters, {len(held_stream)} "
          f"tokens, {held_bytes} bytes held out")

    def report(model):
        return "held out {:.4f} nats/token, {:.4f} bits/byte".format(*held_out_loss(model, held_stream, held_bytes))

    def describe(name, model, steps):
        print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, {steps} steps, {report(model)}")

    target = new_model(TARGET, seed=1)
    add_dropout(target, 0.1)
    steps = train_target(target, stream, args, report)
    write_folder(target, tokenizer_path, args.out / "tiny-qwen3")
    describe("tiny-qwen3", target, steps)

    samples_path = args.work / "samples.pt"
    if not samples_path.exists():
        sample_texts(target, stream, samples_path, args.sample_rounds, torch.Generator().manual_seed(2))
    draft = new_model(DRAFT, seed=2)
    steps = train_draft(draft, target, stream, torch.load(samples_path, weights_only=True), args, report)
    write_folder(draft, tokenizer_path, args.out / "tiny-qwen3-draft")
    describe("tiny-qwen3-draft", draft, steps)
    write_prompts(held, args.out / "heldout-prompts.jsonl")


if __name__ == "__main__":
    main()
