#!/usr/bin/env python3
"""Audits and compares what tools/record_engines.py recorded, and prints the tables of docs/engines.md as Markdown.

    tools/engines_tables.py --hallmark build/hallmark OUT

OUT holds the folders transformers, llama.cpp, vllm and hallmark (logs of `hallmark decode --keep-rows` on the same
prompts); what is missing is left out.
"""
import argparse
import collections
import json
import subprocess
from pathlib import Path

RULES = ["greedy", "topm:4", "additive:1/10", "entropy:9/100,3/10", "nucleus:9/10"]
COUNTS = ["prompts", "identical", "tie", "explained", "unexplained", "undecided", "outliers"]
PAIRS = [
    ("transformers/f32-b1/all.safetensors", "transformers/f32-b8/all.safetensors", "f32, 1 and 8 prompts at once"),
    ("transformers/f32-b1/all.safetensors", "transformers/f32-forced/all.safetensors", "f32, decoding and one pass"),
    ("transformers/bf16-b1/all.safetensors", "transformers/bf16-b8/all.safetensors", "bf16, 1 and 8 prompts at once"),
    ("transformers/f32-b1/all.safetensors", "transformers/bf16-b1/all.safetensors", "f32 and bf16"),
    ("transformers/f32-b1/all.safetensors", "transformers/bf16-forced/all.safetensors", "f32 and bf16 on f32's path"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/plain-completion-cached.jsonl", "prompt cache off and on"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/parallel-completion.jsonl", "1 and 4 prompts at once"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/kv32-completion.jsonl", "f16 and f32 cache"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/smollm2-bf16-completion.jsonl", "f32 and bf16 weights"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/smollm2-q8_0-completion.jsonl", "f32 and q8_0 weights"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/rope-completion.jsonl", "a wrong RoPE base"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/plain-completion-warm.jsonl", "temperature 0 and 0.8"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/draft-completion.jsonl", "speculation by a draft model"),
    ("llama.cpp/plain-completion.jsonl", "llama.cpp/ngram-completion.jsonl", "speculation by n-grams"),
    ("llama.cpp/smollm2-f32.kld", "llama.cpp/smollm2-bf16.kld", "base files, f32 and bf16 weights"),
    ("llama.cpp/smollm2-f32.kld", "llama.cpp/smollm2-q8_0.kld", "base files, f32 and q8_0 weights"),
    ("vllm/plain-completions-token-id-text.jsonl", "vllm/wide-completions-token-id-text.jsonl", "1 and 8 prompts at once"),
    ("vllm/plain-completions-token-id-text.jsonl", "vllm/bf16-completions-token-id-text.jsonl", "f32 and bf16"),
    ("vllm/plain-completions-token-id-text.jsonl", "vllm/ngram-completions-token-id-text.jsonl", "speculation by n-grams"),
    ("vllm/plain-completions-token-id-text.jsonl", "vllm/eagle3-completions-token-id-text.jsonl", "speculation by EAGLE-3"),
    ("hallmark/plain.jsonl", "hallmark/eagle3.jsonl", "speculation by EAGLE-3 trees"),
    ("hallmark/plain.jsonl", "transformers/f32-b1/all.safetensors", "hallmark and transformers"),
    ("hallmark/plain.jsonl", "vllm/offline.jsonl", "hallmark and vLLM"),
    ("hallmark/plain.jsonl", "llama.cpp/kv32-completion.jsonl", "hallmark and llama.cpp, f32 cache"),
    ("transformers/f32-b1/all.safetensors", "vllm/offline.jsonl", "transformers and vLLM"),
    ("transformers/f32-b1/all.safetensors", "llama.cpp/kv32-completion.jsonl", "transformers and llama.cpp, f32 cache"),
    ("transformers/f32-b1/all.safetensors", "llama.cpp/plain-completion.jsonl", "transformers and llama.cpp"),
    ("transformers/bf16-b1/all.safetensors", "vllm/bf16-completions-token-id-text.jsonl", "transformers and vLLM, bf16"),
    ("vllm/offline.jsonl", "llama.cpp/plain-chat.jsonl", "vLLM and llama.cpp's chats"),
    ("vllm/plain-chat.jsonl", "llama.cpp/plain-chat.jsonl", "chats of vLLM and llama.cpp"),
]


def lines(command):
    """The JSON lines a command prints, and its exit code; an unreadable input is a record of its own."""
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    records = [json.loads(line) for line in result.stdout.splitlines()]
    if result.returncode == 2:
        records.append({"kind": "unreadable", "message": result.stderr.strip().splitlines()[0]})
    return records, result.returncode


# Per rule: emitted tokens accepted / rejected / undecided.
def audits(hallmark, out):
    files = [p for folder in ("llama.cpp", "vllm") for p in sorted((out / folder).glob("*"))
             if p.suffix in (".jsonl", ".sse", ".kld") and not p.name.startswith("prompts")]
    files += sorted((out / "transformers").glob("*/all.safetensors")) + sorted((out / "hallmark").glob("*.jsonl"))
    print("| file | format | tokens | with a row | " + " | ".join(RULES) + " | findings | exit |")
    print("|---" * (len(RULES) + 6) + "|")
    for path in files:
        rules = [word for rule in RULES for word in ("--rule", rule)]
        records, code = lines([hallmark, "audit", "--json", "--vocab", "49152", *rules, path])
        kinds = collections.defaultdict(list)
        for record in records:
            kinds[record["kind"]].append(record)
        name = path.relative_to(out)
        if kinds["unreadable"]:
            print(f"| `{name}` | unreadable: {kinds['unreadable'][0]['message']} |")
            continue
        found = collections.Counter(f["finding"] for f in kinds["finding"])
        claims = " | ".join(claim_words(r) for r in decisions(kinds))
        summary = kinds["summary"][0] if kinds["summary"] else {}
        form = kinds["input"][0]["format"] if kinds["input"] else "rows"
        findings = ", ".join(f"{n} {k}" for k, n in sorted(found.items()))
        counts = f"{summary.get('tokens', '')} | {summary.get('with_row', '')}"
        print(f"| `{name}` | {form} | {counts} | {claims} | {findings} | {code} |")


def decisions(kinds):
    """Per rule, how many emitted tokens are accepted, rejected, undecided: from the summary, else none."""
    if not kinds["summary"] or not kinds["summary"][0].get("claims"):
        return [None] * len(RULES)
    return kinds["summary"][0]["claims"]


def claim_words(claim):
    return "" if not claim or not any(claim[:3]) else "/".join(str(n) for n in claim[:3])


def comparisons(hallmark, out):
    print("| A | B | " + " | ".join(COUNTS) + " | noise 50 % | 99.9 % | most | exit |")
    print("|---" * 13 + "|")
    for a, b, words in PAIRS:
        if not (out / a).exists() or not (out / b).exists():
            continue
        options = ["--printing", "round-trip", *(["--same-path"] if a.endswith(".kld") else [])]
        records, code = lines([hallmark, "compare", "--json", *options, out / a, out / b])
        last = {record["kind"]: record for record in records}
        if "summary" not in last:
            print(f"| {words}: `{a}` | `{b}` | {last.get('unreadable', {}).get('message', 'no summary')} | exit {code} |")
            continue
        s, q = last["summary"], last.get("noise", {}).get("quantiles") or {}
        counts = " | ".join(str(s[k]) for k in COUNTS)
        noise = " | ".join(number(q[k][1]) if k in q else "" for k in ("50", "99.9", "100"))
        print(f"| {words}: `{a}` | `{b}` | {counts} | {noise} | {code} |")


def number(x):
    return x if isinstance(x, str) else f"{x:.2g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hallmark", default="build/hallmark")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    print("## What an audit says\n")
    audits(options.hallmark, options.out)
    print("\n## What a comparison says\n")
    comparisons(options.hallmark, options.out)


if __name__ == "__main__":
    main()
