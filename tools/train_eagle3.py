#!/usr/bin/env python3
"""Trains an EAGLE-3 drafter for a target checkpoint: models/tiny-eagle3, models/smollm2-135m-eagle3.  Recipe, data and
figures: docs/eagle3-training.md.  Stages, each skipped or continued when its result is already in the work folder:
text written by the target, with the features of every position (eagle3_sampling.py); the draft vocabulary; training
(the loss below); the checkpoint folder; its acceptance on text that was held out.

    apt install bible-kjv && pip install -r tools/requirements.txt
    tools/train_eagle3.py --target models/tiny-qwen3 --text chapters --rounds 28 --draft-vocabulary 1024 \\
        --minutes 30 --lr 2e-3 --work build/eagle3-tiny --out models/tiny-eagle3

With --evaluate or --golden DIR it only measures --out, or writes the golden files of the C test from it.
"""
import argparse
import json
import re
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

import train_tiny
from eagle3_drafter import Drafter, read_folder, unroll, write_folder
from eagle3_goldens import write_goldens
from eagle3_sampling import FREE, Continuation, Conversation, Target, sample_round

DECAY = 0.8            # weight of a recurrent step against the one before
ROWS, HELD_ROWS = 64, 32
LENGTH = {"chapters": 256, "chat": 384}
PROMPT, GOLDEN = 32, 24  # tokens of a chapter before the target goes on, and in the golden file


# ---- text

def chapters(tok):
    """(training, held-out) token streams, the split of the target's own training."""
    return [train_tiny.encode(tok, part) for part in train_tiny.split_chapters(train_tiny.read_chapters(None))]


def write_rounds(args, target, tok):
    """round-NNN.safetensors to train on and held.safetensors to measure on, all greedy."""
    streams = chapters(tok) if args.text == "chapters" else (None, None)

    def rows(count, stream, generator, greedy):
        if args.text == "chat":
            return [Conversation(tok, greedy(i), i % 10 in (3, 6, 9), generator) for i in range(count)]
        prompts = train_tiny.windows(stream, count, generator)[:, :PROMPT].tolist()
        return [Continuation(p, greedy(i)) for i, p in enumerate(prompts)]

    plan = [("held", HELD_ROWS, streams[1], 999, lambda i: True)]
    plan += [(f"round-{r:03d}", ROWS, streams[0], 1000 + r, lambda i: i % 2 == 0) for r in range(args.rounds)]
    for name, count, stream, seed, greedy in plan:
        path, generator = args.work / f"{name}.safetensors", torch.Generator().manual_seed(seed)
        if not path.exists():
            sample_round(target, rows(count, stream, generator, greedy), LENGTH[args.text], path, generator)
            print(f"sampled {path.name}", flush=True)


def word_runs(text, n=8):
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i:i + n]) for i in range(len(words) - n + 1)}


class Corpus:
    """The rounds, memory-mapped, without the rows that share eight words in a row with a prompt of an excluded file."""

    def __init__(self, args, tok):
        self.rounds = [load_file(p) for p in sorted(args.work.glob("round-*.safetensors"))[:args.rounds]]
        excluded = set()
        for path in args.exclude:
            for line in path.read_text().splitlines():
                for turn in json.loads(line)["turns"]:
                    excluded |= word_runs(turn)
        texts = [tok.decode_batch(r["ids"].tolist()) for r in self.rounds]
        places = [(r, i) for r, rows in enumerate(texts) for i in range(len(rows))]
        self.places = [(r, i) for r, i in places if not excluded or not word_runs(texts[r][i]) & excluded]
        self.who = torch.stack([self.rounds[r]["who"][i] for r, i in self.places])
        self.ids = torch.stack([self.rounds[r]["ids"][i] for r, i in self.places]).long()
        print(f"text: {len(places)} rows, {len(places) - len(self.places)} dropped for {len(excluded)} excluded runs "
              f"of words; {self.ids.numel()} tokens, {(self.who == FREE).sum()} of them answers", flush=True)

    def batch(self, count, generator):
        picked = [self.places[i] for i in torch.randint(len(self.places), (count,), generator=generator)]
        return {k: torch.stack([self.rounds[r][k][i] for r, i in picked])
                for k in ("ids", "who", "best", "taps", "last")}


@torch.no_grad()
def draft_vocabulary(corpus, target, tok, size):
    """The tokens most to be expected in the answers: how often each occurs, and its probability summed over every
    eighth position, which ranks those too rare to be counted.  Special tokens that occur come first.  Ascending."""
    answers, whole = corpus.ids[corpus.who == FREE].bincount(minlength=target.vocab), corpus.ids.flatten()
    rank = answers.double()
    for r, i in corpus.places:
        here = (corpus.rounds[r]["who"][i] == FREE).nonzero()[::8, 0]
        rank += 8 * (corpus.rounds[r]["last"][i][here].float() @ target.head.T).softmax(-1).sum(0)
    for special in tok.get_added_tokens_decoder():
        rank[special] += 2.0**40 * (whole == special).any()
    chosen = rank.argsort(descending=True, stable=True)[:size].sort().values
    print(f"draft vocabulary: {size} tokens, {answers[chosen].sum() / answers.sum():.4f} of the answers")
    return chosen


# ---- training

def new_drafter(target, to_target):
    """Starts from the target's own parts: its last layer, final norm and head rows, the last tap as the feature."""
    c = target.config
    torch.manual_seed(1)
    drafter = Drafter({"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "num_hidden_layers": 1,
                       "hidden_act": "silu", "draft_vocab_size": len(to_target), "tie_word_embeddings": False, "torch_dtype": "bfloat16",
                       **{k: c[k] for k in ("hidden_size", "intermediate_size", "num_attention_heads", "vocab_size",
                                            "num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta",
                                            "max_position_embeddings")}})
    w, p, d, h = target.weights, f"model.layers.{target.layers - 1}.", target.head_dim, target.hidden
    layer, a, mlp = drafter.midlayer, drafter.midlayer.self_attn, drafter.midlayer.mlp
    with torch.no_grad():
        drafter.lm_head.weight.copy_(target.head[to_target])
        drafter.norm.weight.copy_(w["model.norm.weight"])
        drafter.fc.weight.mul_(0.1)[:, 2 * h:] += torch.eye(h)
        layer.hidden_norm.weight.copy_(w[p + "input_layernorm.weight"])
        layer.post_attention_layernorm.weight.copy_(w[p + "post_attention_layernorm.weight"])
        parts = w[p + "qkv"].split((target.heads * d, target.kv * d, target.kv * d))
        for projection, part in zip((a.q_proj, a.k_proj, a.v_proj), parts):
            projection.weight[:, h:] = part
        a.o_proj.weight.copy_(w[p + "self_attn.o_proj.weight"])
        for projection, part in zip((mlp.gate_proj, mlp.up_proj), w[p + "gate_up"].chunk(2)):
            projection.weight.copy_(part)
        mlp.down_proj.weight.copy_(w[p + "mlp.down_proj.weight"])
    return drafter


def loss_of_batch(drafter, target, head, inside, data, steps):
    """Sum over steps s of DECAY^s * mean KL(target | draft vocabulary, renormalised || drafter); head [Vd, H]: the
    target's rows.  The row after token t teaches step s of the slot t - 1 - s.  It counts where the target itself chose
    the next token and its likeliest one is in the draft vocabulary."""
    ids, slots = data["ids"].long(), data["ids"].shape[1] - steps
    wanted = (data["who"][:, 1:] == FREE) & inside[data["best"][:, :-1].long()]
    row, at = wanted.nonzero(as_tuple=True)
    with torch.no_grad():
        teacher = (data["last"][row, at].float() @ head.T).softmax(-1)
        entropy = -torch.xlogy(teacher, teacher).sum(-1)
    total = 0.0
    for s, out in enumerate(unroll(drafter, data["taps"][:, :slots].float(),
                                   lambda s: target.embedding[ids[:, 1 + s:1 + s + slots]], steps)):
        slot = at - 1 - s
        good = (slot >= 0) & (slot < slots)
        student = drafter.logits(out[row[good], slot[good]])
        total = total + DECAY**s * (F.cross_entropy(student, teacher[good]) - entropy[good].mean())
    return total


def train(args, target, tok):
    corpus, chosen = Corpus(args, tok), args.work / "vocabulary.pt"
    if not chosen.exists():
        torch.save(draft_vocabulary(corpus, target, tok, args.draft_vocabulary), chosen)
    to_target = torch.load(chosen)
    inside = torch.zeros(target.vocab, dtype=torch.bool)
    inside[to_target] = True
    head = target.head[to_target]
    drafter, held = new_drafter(target, to_target), load_file(args.work / "held.safetensors")
    drafter.lm_head.requires_grad_(not args.freeze_head)

    def loss_of(model, step):
        data = corpus.batch(args.batch, torch.Generator().manual_seed(step))
        return loss_of_batch(model, target, head, inside, data, args.steps)

    def report(model):
        return "held out, by depth " + " ".join(f"{a / n:.4f}" for a, n in acceptance(model, target, to_target, held))

    steps = train_tiny.optimise(drafter, loss_of, args.work / "drafter.pt", args.minutes, args.lr, report, args.every)
    print(f"{steps} steps of {args.batch} rows, {sum(p.numel() for p in drafter.parameters())} parameters")
    write_folder(drafter, to_target - torch.arange(len(to_target)), inside, args.out)


# ---- measuring

@torch.no_grad()
def acceptance(drafter, target, to_target, data, steps=5):
    """[(accepted, tried)] by depth on greedy text: from every slot a chain of the drafter's likeliest tokens is drafted
    as a decoder would, each from its parent's feature; depth n is tried where depth n - 1 was accepted."""
    ids, slots = data["ids"].long(), data["ids"].shape[1] - 1 - steps
    counts = []
    for begin in range(0, len(ids), 8):
        some, drafted, alive = slice(begin, begin + 8), None, torch.tensor(True)
        chain = unroll(drafter, data["taps"][some, :slots].float(),
                       lambda s: target.embedding[drafted if s else ids[some, 1:1 + slots]], steps)
        for s, out in enumerate(chain):
            drafted = to_target[drafter.logits(out).argmax(-1)]
            alive = alive & (data["who"][some, 2 + s:2 + s + slots] == FREE)
            right = alive & (drafted == ids[some, 2 + s:2 + s + slots])
            counts.append((s, right.sum().item(), alive.sum().item()))
            alive = right
    return [tuple(sum(c[i] for c in counts if c[0] == s) for i in (1, 2)) for s in range(steps)]


@torch.no_grad()
def feature_error(args, target, data):
    """Largest |kept - transformers| / |transformers| over the positions of one row, each a vector: rounding to bf16."""
    model = AutoModelForCausalLM.from_pretrained(args.target, dtype=torch.float32)
    states = model(data["ids"][:1].long(), output_hidden_states=True).hidden_states
    pairs = [(kept, states[i]) for kept, i in zip(data["taps"][:1].chunk(3, -1), target.taps)]
    return max(((kept - true).norm(dim=-1) / true.norm(dim=-1)).max().item()
               for kept, true in [*pairs, (data["last"][:1], states[-1])])


def evaluate(args, target):
    drafter, to_target = read_folder(args.out)
    held = load_file(args.work / "held.safetensors")
    print(f"features against those of transformers: {feature_error(args, target, held):.1e}")
    early = {k: v[:, :v.shape[1] * 3 // 8] for k, v in held.items() if v.dim() > 1}
    for name, data in ("whole rows", held), ("their first three eighths", early):
        mean, product = 0.0, 1.0
        print(f"{name}:")
        for depth, (accepted, tried) in enumerate(acceptance(drafter, target, to_target, data), 1):
            product *= accepted / max(tried, 1)
            mean += product
            print(f"  depth {depth}: {accepted} of {tried} accepted, {accepted / max(tried, 1):.4f}")
        print(f"  a chain of 5: {mean:.3f} tokens accepted")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True, help="checkpoint folder")
    parser.add_argument("--text", choices=sorted(LENGTH), required=True, help="what the target is made to write")
    parser.add_argument("--rounds", type=int, default=20, help=f"of {ROWS} rows of text (default 20)")
    parser.add_argument("--draft-vocabulary", type=int, default=1024)
    parser.add_argument("--minutes", type=float, default=25, help="of training (default 25)")
    parser.add_argument("--batch", type=int, default=8, help="rows a step (default 8)")
    parser.add_argument("--steps", type=int, default=3, help="recurrent steps of training (default 3)")
    parser.add_argument("--lr", type=float, default=1e-3, help="peak (default 1e-3)")
    parser.add_argument("--every", type=int, default=500, help="steps between reports (default 500)")
    parser.add_argument("--freeze-head", action="store_true", help="leave the head as the target's rows")
    parser.add_argument("--exclude", type=Path, nargs="*", default=[], help="prompt files (MT-bench form) to keep out")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, required=True, help="samples and checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="the drafter's folder")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--golden", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.work.mkdir(parents=True, exist_ok=True)
    target, tok = Target(args.target), Tokenizer.from_file(str(args.target / "tokenizer.json"))
    if args.golden:
        drafter, to_target = read_folder(args.out)
        write_goldens(args.target, drafter, to_target, chapters(tok)[1][:GOLDEN], args.golden)
        return
    if not args.evaluate:
        write_rounds(args, target, tok)
        train(args, target, tok)
    evaluate(args, target)


if __name__ == "__main__":
    main()
