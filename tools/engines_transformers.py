"""Records transformers: whole rows of logits of `generate`, at two batch shapes, in two types, and of forced contexts."""
import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


def record(options, prompts, out):
    torch.set_num_threads(options.threads)
    reference = None
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        model = AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype).eval()
        for batch in (1, 8):
            case = f"{name}-b{batch}"
            if options.case and case not in options.case and reference is not None:
                continue
            answers = decode(model, prompts, batch, options.tokens)
            reference = reference or answers
            write(out / case, prompts, answers, npy=case == "f32-b1")
        write(out / f"{name}-forced", prompts, forced(model, prompts, reference))
        if name == "f32":
            few = prompts[:options.few]
            write(out / "f32-b1-warm", few, decode(model, few, 1, options.tokens, warm=True))


def decode(model, prompts, batch, tokens, warm=False):
    """`generate` with the prompts padded on the left to the longest of their batch: (tokens, rows, processed rows)."""
    settings = {"do_sample": True, "temperature": 0.8, "top_k": 50, "top_p": 0.95} if warm else {
        "do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    pad = model.config.pad_token_id if model.config.pad_token_id is not None else 0
    end = model.generation_config.eos_token_id
    ends = end if isinstance(end, list) else [end]
    answers = []
    for at in range(0, len(prompts), batch):
        ids = [p.ids for p in prompts[at:at + batch]]
        longest = max(map(len, ids))
        table = torch.tensor([[pad] * (longest - len(i)) + i for i in ids])
        mask = torch.tensor([[0] * (longest - len(i)) + [1] * len(i) for i in ids])
        torch.manual_seed(7)
        with torch.no_grad():
            result = model.generate(table, attention_mask=mask, max_new_tokens=tokens, pad_token_id=pad, output_logits=True,
                                    output_scores=True, return_dict_in_generate=True, **settings)
        for i in range(len(ids)):
            emitted = result.sequences[i, longest:].tolist()
            length = next((t + 1 for t, token in enumerate(emitted) if token in ends), len(emitted))
            rows = torch.stack([step[i] for step in result.logits[:length]]).float()
            scores = torch.stack([step[i] for step in result.scores[:length]]).float() if warm else None
            answers.append((emitted[:length], rows, scores))
    return answers


def forced(model, prompts, answers):
    """One pass over prompt and answer: the same contexts, another shape of the computation."""
    result = []
    for p, (emitted, _, _) in zip(prompts, answers):
        with torch.no_grad():
            logits = model(torch.tensor([p.ids + emitted])).logits[0].float()
        result.append((emitted, logits[len(p.ids) - 1:-1], None))
    return result


def write(folder, prompts, answers, npy=False):
    """A file for each prompt, and one with all their rows; docs/evidence.md "Rows and their tokens" explains them."""
    folder.mkdir(parents=True, exist_ok=True)
    for p, (emitted, rows, scores) in zip(prompts, answers):
        tensors = {"logits": rows.contiguous(), "tokens": torch.tensor(emitted), "prompt": torch.tensor(p.ids)}
        if scores is not None:
            tensors["scores"] = scores.contiguous()
        save_file(tensors, folder / f"{p.id}.safetensors")
        if npy:
            np.save(folder / f"{p.id}.npy", rows.numpy())
    lengths = [len(emitted) for emitted, _, _ in answers]
    save_file({"logits": torch.cat([rows for _, rows, _ in answers]).contiguous(),
               "tokens": torch.tensor([token for emitted, _, _ in answers for token in emitted]),
               "first": starts(lengths), "prompt": torch.tensor([token for p in prompts for token in p.ids]),
               "prompt_first": starts([len(p.ids) for p in prompts])}, folder / "all.safetensors")
    print(f"{folder}: {sum(lengths)} rows of {len(answers)} prompts", flush=True)


def starts(lengths):
    return torch.tensor([sum(lengths[:i]) for i in range(len(lengths))])
