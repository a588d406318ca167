"""Text written by a target, and the features an EAGLE-3 drafter reads, kept as they are computed: see train_eagle3.py.

A row is a sequence of fixed length that never stops.  Where the source forces tokens (a prompt, the marks around a
turn) the row takes them, elsewhere it samples; so no row waits for another and none is padded.
"""
import json
import os
from collections import deque

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

FORCED, USER, FREE = 0, 1, 2  # who chose a token: nobody, the target playing the user, the target itself
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # as the chat template has it
USER_MOST = 96                # tokens of a user turn before it is closed

# Beginnings of user turns, ours; the target completes them.  An empty one leaves the whole turn to it.
TALK = ["", "", "", "", "Explain ", "Explain how ", "What is the difference between ", "Write a short story about ",
        "Give me three ideas for ", "How can I ", "Summarise the following text:\n\n", "Describe ", "Why do ",
        "Write a poem about ", "Plan a ", "Help me write a letter to ", "List the main causes of ", "Is it true that ",
        "A train leaves ", "Solve this problem step by step: ", "Imagine you are ", "Compare ", "What happened in ",
        "Translate into French: ", "Who was ", "Tell me about the history of ", "What would happen if ",
        "I have a question about ", "Rewrite this sentence: ", "Calculate ", "Name five ", "Give advice on "]
CODE = ["Write a Python function ", "Write a Python function that returns ", "Finish this function:\n\ndef ",
        "What does this code do?\n\nfor ", "Write a C program ", "Fix the error in this code:\n\ndef ",
        "Write a class ", "Write an SQL query ", "How do I sort ", "Write a test for this function:\n\ndef ",
        "Implement in Python: ", "Write a regular expression ", "Write a shell script "]
FOLLOW = ["", "", "Can you ", "Now ", "Thanks! ", "What about ", "Shorten your answer", "Give an example of ", "Why "]


class Target:
    """A Qwen3 or Llama checkpoint in float32, one block of new tokens at a time over a cache that is allocated once.
    `--evaluate` compares the features with those of transformers."""

    def __init__(self, folder):
        self.config = c = json.loads((folder / "config.json").read_text())
        self.weights = w = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
        self.layers, self.hidden, self.vocab = c["num_hidden_layers"], c["hidden_size"], c["vocab_size"]
        self.heads, self.kv, self.eps = c["num_attention_heads"], c["num_key_value_heads"], c["rms_norm_eps"]
        self.head_dim, self.theta = c["head_dim"], c["rope_theta"]
        self.taps = (2, self.layers // 2, self.layers - 3)
        self.embedding = w["model.embed_tokens.weight"]
        self.head = w.get("lm_head.weight", self.embedding)
        for i in range(self.layers):
            p = f"model.layers.{i}."
            w[p + "qkv"] = torch.cat([w.pop(f"{p}self_attn.{n}_proj.weight") for n in "qkv"])
            w[p + "gate_up"] = torch.cat([w.pop(f"{p}mlp.{n}_proj.weight") for n in ("gate", "up")])

    def start(self, rows, length):
        shape = (2, self.layers, rows, self.kv, length, self.head_dim)
        self.cache, self.filled = torch.zeros(shape), 0
        self.cos, self.sin = rope_table(length, self.head_dim, self.theta)

    def step(self, ids):
        """ids [B, T]: (taps [B, T, 3H], final normed hidden [B, T, H]) of those tokens, which enter the cache."""
        w, (rows, new), begin = self.weights, ids.shape, self.filled
        end = self.filled = begin + new
        x, taps = F.embedding(ids, self.embedding), []
        cos, sin = self.cos[begin:end], self.sin[begin:end]
        mask = None if new == 1 else torch.ones(new, end, dtype=torch.bool).tril(begin)
        for i in range(self.layers):
            p = f"model.layers.{i}."
            if i in self.taps:
                taps.append(x)
            y = rms_norm(x, w[p + "input_layernorm.weight"], self.eps) @ w[p + "qkv"].T
            y = y.view(rows, new, self.heads + 2 * self.kv, self.head_dim).transpose(1, 2)
            q, k, v = y.split((self.heads, self.kv, self.kv), 1)
            if p + "self_attn.q_norm.weight" in w:
                q = rms_norm(q, w[p + "self_attn.q_norm.weight"], self.eps)
                k = rms_norm(k, w[p + "self_attn.k_norm.weight"], self.eps)
            keys, values = self.cache[0, i], self.cache[1, i]
            keys[:, :, begin:end], values[:, :, begin:end] = rotate(k, cos, sin), v
            y = F.scaled_dot_product_attention(rotate(q, cos, sin), keys[:, :, :end], values[:, :, :end],
                                               attn_mask=mask, enable_gqa=True)
            x = x + y.transpose(1, 2).reshape(rows, new, -1) @ w[p + "self_attn.o_proj.weight"].T
            y = rms_norm(x, w[p + "post_attention_layernorm.weight"], self.eps)
            gate, up = (y @ w[p + "gate_up"].T).chunk(2, -1)
            x = x + (F.silu(gate) * up) @ w[p + "mlp.down_proj.weight"].T
        return torch.cat(taps, -1), rms_norm(x, w["model.norm.weight"], self.eps)


def rms_norm(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight, eps)


def rope_table(length, head_dim, theta):
    angle = torch.arange(length)[:, None] * theta ** (-torch.arange(0, head_dim, 2) / head_dim)
    return torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


# ---- sources: what a row is made of

class Continuation:
    """`prompt` tokens of a text, then the target's own continuation."""

    def __init__(self, prompt, greedy):
        self.queue, self.greedy = deque(prompt), greedy

    def next(self):
        """(token, FORCED) or (None, who samples)."""
        return (self.queue.popleft(), FORCED) if self.queue else (None, FREE)

    def took(self, token, who):
        pass


class Conversation:
    """System prompt, then turns, all of them written by the target: the user's at temperature 1, the answers greedily
    or at the sampling temperature."""

    def __init__(self, tok, greedy, code, generator):
        self.tok, self.greedy, self.generator = tok, greedy, generator
        self.opener, self.speaker, self.spent = CODE if code else TALK, USER, 0
        self.queue = deque(tok.encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n").ids + self.open())

    def open(self):
        opener = self.opener[torch.randint(len(self.opener), (1,), generator=self.generator).item()]
        return self.tok.encode(opener.rstrip(" ")).ids

    def next(self):
        if self.queue:
            return self.queue.popleft(), FORCED
        if self.speaker == USER and self.spent >= USER_MOST:
            return self.tok.token_to_id("<|im_end|>"), USER
        return None, self.speaker

    def took(self, token, who):
        if who == FORCED:
            return
        self.spent += 1
        if token != self.tok.token_to_id("<|im_end|>"):
            return
        self.spent, self.speaker = 0, FREE if who == USER else USER
        if who == FREE:
            self.opener = FOLLOW
        name = "assistant\n" if who == USER else "user\n"
        self.queue.extend(self.tok.encode(f"\n<|im_start|>{name}").ids + (self.open() if who == FREE else []))


def choose(logits, best, greedy, user, temperature, generator):
    """One token a row: `best`, or a draw; a user turn's at temperature 1 among the 50 likeliest tokens."""
    token, warm = best.clone(), (~user & ~torch.tensor(greedy)).nonzero()[:, 0]
    if len(warm):
        sums = (logits[warm] / temperature).softmax(-1).cumsum(-1)
        drawn = torch.rand(len(warm), 1, generator=generator) * sums[:, -1:]
        token[warm] = torch.searchsorted(sums, drawn)[:, 0].clamp(max=logits.shape[1] - 1)
    if user.any():
        value, index = logits[user].topk(50, -1)
        token[user] = index.gather(-1, torch.multinomial(value.softmax(-1), 1, generator=generator))[:, 0]
    return token


@torch.no_grad()
def sample_round(target, rows, length, path, generator, temperature=0.8):
    """Writes one safetensors file: ids, who, best (argmax of the row after the token) [B, L], greedy [B]; taps
    [B, L, 3H] and the final normed hidden state, last [B, L, H], in bf16."""
    greedy = [row.greedy for row in rows]
    ids, best = (torch.zeros(len(rows), length, dtype=torch.int32) for _ in "ib")
    who = torch.zeros(len(rows), length, dtype=torch.uint8)
    taps = torch.zeros(len(rows), length, 3 * target.hidden, dtype=torch.bfloat16)
    last = torch.zeros(len(rows), length, target.hidden, dtype=torch.bfloat16)
    target.start(len(rows), length)
    logits = None
    for t in range(length):
        picked, user = [row.next() for row in rows], []
        if any(token is None for token, _ in picked):
            user = torch.tensor([w == USER for _, w in picked])
            drawn = choose(logits, best[:, t - 1].long(), greedy, user, temperature, generator).tolist()
            picked = [(d if token is None else token, w) for d, (token, w) in zip(drawn, picked)]
        for row, (token, w) in zip(rows, picked):
            row.took(token, w)
        ids[:, t] = torch.tensor([token for token, _ in picked])
        who[:, t] = torch.tensor([w for _, w in picked])
        feature, hidden = target.step(ids[:, t:t + 1].long())
        taps[:, t], last[:, t] = feature[:, 0], hidden[:, 0]
        logits = hidden[:, 0] @ target.head.T
        best[:, t] = logits.argmax(-1)
    temporary = path.with_suffix(".new")
    save_file({"ids": ids, "who": who, "best": best, "greedy": torch.tensor(greedy), "taps": taps, "last": last},
              temporary)
    os.replace(temporary, path)
