"""The graph of an EAGLE-3 drafter in float32, with the variants that published checkpoints switch on in config.json.

A slot pairs the target's feature at position i with the embedding of token i + 1; it stands at position i and predicts
token i + 2.  Stable slots see each other causally; a drafted slot sees the stable slots and its own ancestors.
"""
import json

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from eagle3_sampling import rope_table, rotate


class Weight(nn.Module):
    """A named matrix or vector without bias, so that the state dictionary has the names of the checkpoints."""

    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(*shape) if len(shape) == 1 else torch.randn(*shape) * shape[1] ** -0.5)

    def forward(self, x):
        return x @ self.weight.T


class Norm(Weight):
    def __init__(self, width, eps):
        super().__init__(width)
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, queries, keys = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
        self.q_proj = Weight(queries * c["head_dim"], 2 * width)
        self.k_proj, self.v_proj = (Weight(keys * c["head_dim"], 2 * width) for _ in "kv")
        self.o_proj = Weight(width, queries * c["head_dim"])
        if c.get("qk_norm"):  # no key of the checkpoints: the two tensors are there or not
            self.q_norm, self.k_norm = (Norm(c["head_dim"], c["rms_norm_eps"]) for _ in "qk")


class Mlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = Weight(inner, width), Weight(inner, width), Weight(width, inner)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, eps = c["hidden_size"], c["rms_norm_eps"]
        self.input_layernorm, self.hidden_norm = Norm(width, eps), Norm(width, eps)
        self.post_attention_layernorm = Norm(width, eps)
        self.self_attn, self.mlp = Attention(c), Mlp(width, c["intermediate_size"])


class Drafter(nn.Module):
    """c: the keys of config.json.  A position brings three taps of the target unless the configuration lists them."""

    def __init__(self, c):
        super().__init__()
        self.c, width, eps = c, c["hidden_size"], c["rms_norm_eps"]
        taps = len(c.get("eagle_aux_hidden_state_layer_ids", range(3)))
        wide = c.get("target_hidden_size") or width
        self.fc, self.midlayer, self.norm = Weight(width, taps * wide), Layer(c), Norm(width, eps)
        self.lm_head = Weight(c["draft_vocab_size"], width)
        if c.get("fc_norm"):
            self.fc_norm = nn.ModuleList(Norm(wide, eps) for _ in range(taps))
        if c.get("norm_before_fc"):
            self.input_norm = Norm(taps * wide, eps)

    def fuse(self, taps):
        """The feature of a stable slot, from the target's taps side by side."""
        if self.c.get("fc_norm"):
            taps = torch.cat([n(t) for n, t in zip(self.fc_norm, taps.chunk(len(self.fc_norm), -1))], -1)
        if self.c.get("norm_before_fc"):
            taps = self.input_norm(taps)
        return self.fc(taps)

    def project(self, feature, embedding, position):
        """(residual, q [B, heads, S, d], k, v [B, kv, S, d]) of slots; keys and queries rotated."""
        layer, a, d = self.midlayer, self.midlayer.self_attn, self.c["head_dim"]
        normed = layer.hidden_norm(feature)
        x = torch.cat([layer.input_layernorm(embedding), normed], -1)
        q, k, v = (p(x).unflatten(-1, (-1, d)).transpose(-3, -2) for p in (a.q_proj, a.k_proj, a.v_proj))
        if self.c.get("qk_norm"):
            q, k = a.q_norm(q), a.k_norm(k)
        cos, sin = (table[position] for table in rope_table(int(position.max()) + 1, d, self.c["rope_theta"]))
        return normed if self.c.get("norm_before_residual") else feature, rotate(q, cos, sin), rotate(k, cos, sin), v

    def finish(self, residual, attended):
        """`out` of slots from the heads' results [B, heads, S, d]."""
        h = residual + self.midlayer.self_attn.o_proj(attended.transpose(-3, -2).flatten(-2))
        return h + self.midlayer.mlp(self.midlayer.post_attention_layernorm(h))

    def logits(self, out):
        return self.lm_head(self.norm(out))

    def feedback(self, out):
        """The feature a slot hands to its children."""
        return self.norm(out) if self.c.get("norm_output") else out


def attend(q, k, v, allowed):
    """allowed [S, K]: which keys a slot sees."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)


class Session:
    """Drafting as a decoder does it, one sequence: the stable pass, then tree steps.  Plain: the oracle of the C."""

    def __init__(self, drafter, embedding):
        self.drafter, self.embedding = drafter, embedding

    def stable(self, taps, tokens):
        """taps [L-1, .], tokens [L]: `out` [L-1, H] of the stable slots."""
        count = len(tokens) - 1
        residual, q, self.k, self.v = self.drafter.project(self.drafter.fuse(taps), self.embedding[tokens[1:]],
                                                           torch.arange(count))
        self.depth, self.ancestors = count, [list(range(count))]
        out = self.drafter.finish(residual, attend(q, self.k, self.v, torch.ones(count, count).tril().bool()))
        self.features = self.drafter.feedback(out)[-1:]
        return out

    def step(self, tokens, parents):
        """One pass over drafted slots; parents: row of each in the previous step, 0 in the first.  `out` [rows, H]."""
        begin, parents = self.k.shape[-2], list(parents)
        residual, q, k, v = self.drafter.project(self.features[parents], self.embedding[tokens],
                                                 torch.full((len(tokens),), self.depth))
        self.k, self.v = torch.cat([self.k, k], -2), torch.cat([self.v, v], -2)
        self.ancestors = [self.ancestors[p] + [begin + r] for r, p in enumerate(parents)]
        allowed = torch.zeros(len(tokens), self.k.shape[-2], dtype=torch.bool)
        for row, seen in zip(allowed, self.ancestors):
            row[seen] = True
        out = self.drafter.finish(residual, attend(q, self.k, self.v, allowed))
        self.features, self.depth = self.drafter.feedback(out), self.depth + 1
        return out


def unroll(drafter, taps, embedding_at, steps):
    """Training-time test: from every stable slot of taps [B, S, .] a chain of drafted ones; yields `out` [B, S, H] of
    steps 0, 1, ...  embedding_at(s) [B, S, H]: of the token that step s of each chain reads.  A chain sees the stable
    slots up to its own and its own earlier steps, which is what a node of the tree sees."""
    slots = taps.shape[1]
    groups = drafter.c["num_attention_heads"] // drafter.c["num_key_value_heads"]
    position = torch.arange(slots)
    future = torch.ones(slots, slots).triu(1).bool()
    feature, own_keys, own_values = drafter.fuse(taps), [], []
    for s in range(steps):
        residual, q, k, v = drafter.project(feature, embedding_at(s), position + s)
        k, v = (t.repeat_interleave(groups, 1) for t in (k, v))
        if s == 0:
            keys, values = k, v
        else:
            own_keys.append(k)
            own_values.append(v)
        scores = (q @ keys.transpose(-1, -2)).masked_fill(future, -torch.inf)
        scores = torch.cat([scores] + [(q * k).sum(-1, keepdim=True) for k in own_keys], -1)
        weights = (scores * q.shape[-1] ** -0.5).softmax(-1)
        attended = weights[..., :slots] @ values
        for r, v in enumerate(own_values):
            attended = attended + weights[..., slots + r, None] * v
        out = drafter.finish(residual, attended)
        yield out
        feature = drafter.feedback(out)


# ---- folders

def write_folder(drafter, d2t, t2d, folder, prefix="midlayer.", extra=None, drop=()):
    """config.json and model.safetensors in bf16; d2t None: no vocabulary tables."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {k.replace("midlayer.", prefix): v.detach().bfloat16().contiguous()
               for k, v in drafter.state_dict().items() if k not in drop}
    if d2t is not None:
        tensors.update(d2t=d2t, t2d=t2d)
    save_file({**tensors, **(extra or {})}, folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    c = {k: v for k, v in drafter.c.items() if k != "qk_norm"}
    (folder / "config.json").write_text(json.dumps(c, indent=2, sort_keys=True) + "\n")


def read_folder(folder):
    """(drafter, target id of every draft id) of a folder written by train_eagle3.py."""
    drafter = Drafter(json.loads((folder / "config.json").read_text()))
    tensors = load_file(folder / "model.safetensors")
    d2t = tensors.pop("d2t")
    del tensors["t2d"]
    drafter.load_state_dict({k: v.float() for k, v in tensors.items()})
    return drafter.requires_grad_(False), d2t + torch.arange(len(d2t))
