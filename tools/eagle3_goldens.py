"""Golden files for the C drafter, small: what the float32 graph of eagle3_drafter.py gives on weights rounded to bf16.

Folder `tiny`: no checkpoint (it is models/tiny-eagle3), only values.  Every other folder: a drafter with random weights
(hidden size 32) that switches one variant on, and values for it.  Each golden.safetensors holds
  tokens [L] i64, taps [L-1, n] f32, stable.out [L-1, H], stable.logits (of all slots; of the last two in `tiny`),
  and two tree steps: stepN.tokens [2] (target ids), stepN.parents [2], stepN.out [2, H], stepN.logits [2, Vd];
  variants also target.embed_tokens [V, Ht], and target.lm_head where the checkpoint has no head.
A slot of step 1 has the last stable slot as its parent (parents are 0, 0), one of step 2 a row of step 1.
"""
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from eagle3_drafter import Drafter, Session, write_folder

VOCAB, DRAFT_VOCAB, LENGTH = 48, 20, 8
BASE = dict(architectures=["LlamaForCausalLMEagle3"], hidden_size=32, intermediate_size=12, num_attention_heads=2,
            num_key_value_heads=1, head_dim=8, num_hidden_layers=1, rms_norm_eps=1e-6, hidden_act="silu",
            vocab_size=VOCAB, draft_vocab_size=DRAFT_VOCAB, max_position_embeddings=64, rope_theta=10000.0,
            tie_word_embeddings=False, torch_dtype="bfloat16")
VARIANTS = {
    "plain": dict(),
    "norm_output": dict(norm_output=True, draft_vocab_size=VOCAB),    # the full vocabulary, no d2t and no t2d
    "fc_norm": dict(fc_norm=True),                                    # and d2t holds target ids, not offsets
    "norm_before_residual": dict(norm_before_residual=True),          # and `layers.0.` for `midlayer.`
    "norm_before_fc": dict(norm_before_fc=True),
    "target_hidden_size": dict(target_hidden_size=40),                # brings its own embed_tokens
    "five_taps": dict(eagle_aux_hidden_state_layer_ids=[1, 9, 17, 25, 33], qk_norm=True,
                      draft_vocab_size=VOCAB),                        # `layers.0.`, and no lm_head: the target's
}


def to_bf16(drafter):
    with torch.no_grad():
        for p in drafter.parameters():
            p.copy_(p.bfloat16())
    return drafter.requires_grad_(False)


def values(drafter, embedding, to_target, taps, tokens, rows, parents=None):
    """The golden tensors; parents of step 2: given, or the beam of width 2 that an expansion would keep."""
    session = Session(drafter, embedding)
    out = session.stable(taps, tokens)
    logits = drafter.logits(out)
    result = {"tokens": tokens, "taps": taps, "stable.out": out, "stable.logits": logits[-rows:]}
    score, best = logits[-1].log_softmax(-1).topk(2)
    chosen, from_row = to_target[best], [0, 0]
    for step in (1, 2):
        out = session.step(chosen, from_row)
        logits = drafter.logits(out)
        result.update({f"step{step}.tokens": chosen, f"step{step}.parents": torch.tensor(from_row),
                       f"step{step}.out": out, f"step{step}.logits": logits})
        score, index = (score[:, None] + logits.log_softmax(-1)).flatten().topk(2)
        from_row, column = (index // logits.shape[1]).tolist(), index % logits.shape[1]
        if parents:
            from_row, column = parents, logits[parents].argmax(-1)
        chosen = to_target[column]
    return {k: v.contiguous() for k, v in result.items()}


def write_variant(name, changes, folder, seed):
    torch.manual_seed(seed)
    c = {**BASE, **changes}
    drafter, wide = Drafter(c), c.get("target_hidden_size") or c["hidden_size"]
    with torch.no_grad():
        for key, p in drafter.named_parameters():
            if p.dim() == 1:
                p.copy_(1 + 0.3 * torch.randn(p.shape))
    to_bf16(drafter)
    taps = len(c.get("eagle_aux_hidden_state_layer_ids", range(3)))
    embedding = torch.randn(VOCAB, c["hidden_size"]).bfloat16()
    tokens, given = torch.randint(VOCAB, (LENGTH,)), torch.randn(LENGTH - 1, taps * wide)
    extra, target = {}, {"target.embed_tokens": embedding}
    if wide != c["hidden_size"]:
        extra, target = {"embed_tokens.weight": embedding}, {}
    if name == "five_taps":
        target["target.lm_head"] = drafter.lm_head.weight.bfloat16()
    to_target = torch.arange(VOCAB)
    d2t = t2d = None
    if c["draft_vocab_size"] < VOCAB:
        to_target = torch.randperm(VOCAB)[:DRAFT_VOCAB].sort().values
        t2d = torch.zeros(VOCAB, dtype=torch.bool)
        t2d[to_target] = True
        d2t = to_target if name == "fc_norm" else to_target - torch.arange(DRAFT_VOCAB)
    prefix = "layers.0." if name in ("norm_before_residual", "five_taps") else "midlayer."
    write_folder(drafter, d2t, t2d, folder, prefix, extra, ("lm_head.weight",) if name == "five_taps" else ())
    golden = values(drafter, embedding.float(), to_target, given, tokens, LENGTH - 1, [1, 0] if seed % 2 else [1, 1])
    save_file({**golden, **target}, folder / "golden.safetensors")


@torch.no_grad()
def write_goldens(target_folder, drafter, to_target, tokens, folder):
    """tokens [L]: for the trained drafter; its logits of the last two stable slots only, to stay small."""
    model = AutoModelForCausalLM.from_pretrained(target_folder, dtype=torch.float32)
    states, layers = model(tokens[None, :-1], output_hidden_states=True).hidden_states, model.config.num_hidden_layers
    taps = torch.cat([states[i][0] for i in (2, layers // 2, layers - 3)], -1)  # inputs of those layers
    (folder / "tiny").mkdir(parents=True, exist_ok=True)
    golden = values(drafter, model.get_input_embeddings().weight, to_target, taps, tokens, 2)
    save_file(golden, folder / "tiny" / "golden.safetensors")
    for seed, (name, changes) in enumerate(VARIANTS.items()):
        write_variant(name, changes, folder / name, seed)
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)
