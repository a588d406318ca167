"""Records vLLM: its server's OpenAI endpoints, and RequestOutputs of the Python API as text (repr) and as JSON."""
import json
import os
import sys
import urllib.request

from engines_common import ask, chat_bodies, completions_bodies, server

PORT = 18412


def record(options, prompts, out):
    """Server cases first; the Python API runs in this process, so this script must run in vLLM's environment for it."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    few = prompts[:options.few]
    chat, texts = "/v1/chat/completions", "/v1/completions"
    ids = {"return_token_ids": True}
    by_id = ("completions-token-id-text.jsonl", texts,
             completions_bodies(options, prompts, return_tokens_as_token_ids=True, **ids))
    speculative = [{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1},
                   *map(json.loads, options.speculative)]
    cases = [
        ("plain", ["--dtype", "float32"], 1, [
            ("chat.jsonl", chat, chat_bodies(options, prompts)),
            ("chat-ids.jsonl", chat, chat_bodies(options, few, **ids)),
            ("chat-token-id-text.jsonl", chat, chat_bodies(options, few, return_tokens_as_token_ids=True)),
            ("chat-prompt.jsonl", chat, chat_bodies(options, few, prompt_logprobs=2)),
            ("chat-warm.jsonl", chat, chat_bodies(options, few, 0.8)),
            ("chat.sse", chat, chat_bodies(options, few, stream=True)),
            ("completions.jsonl", texts, completions_bodies(options, prompts, **ids)),
            ("completions-echo.jsonl", texts, completions_bodies(options, few, echo=True)),
            by_id,
            ("completions.sse", texts, completions_bodies(options, few, stream=True))]),
        ("wide", ["--dtype", "float32"], 8, [by_id]),
        ("bf16", ["--dtype", "bfloat16"], 1, [by_id]),
        ("processed", ["--dtype", "float32", "--logprobs-mode", "processed_logprobs"], 1, [
            ("chat-warm.jsonl", chat, chat_bodies(options, few, 0.8, top_k=10))]),
    ]
    for config in speculative:
        cases.append((config["method"], ["--dtype", "float32", "--speculative-config", json.dumps(config)], 1, [
            by_id, ("chat.jsonl", chat, chat_bodies(options, few))]))
    for case, arguments, width, requests in cases:
        if options.case and case not in options.case:
            continue
        command = [options.server, "serve", str(options.model), "--served-model-name", options.model.name, "--port", str(PORT),
                   "--max-model-len", "512", "--enforce-eager", "--no-enable-prefix-caching", "--generation-config", "vllm",
                   *arguments]
        with server(command, PORT, out / f"{case}.log") as url:
            for name, path, bodies in requests:
                ask(url + path, [{"model": options.model.name, **body} for body in bodies], out / f"{case}-{name}", width)
                if "--speculative-config" in arguments:
                    counters(url, out / f"{case}-{name}.metrics")
    if not options.case or "offline" in options.case:
        offline(options, prompts, out)


def counters(url, path):
    """The counters of speculation so far; they go on counting over the files of a case."""
    with urllib.request.urlopen(url + "/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "spec_decode" in line), encoding="utf-8")


def offline(options, prompts, out):
    try:
        from vllm import LLM, SamplingParams
    except ImportError:
        print(f"vLLM is not installed for {sys.executable}: outputs of its Python API are left out")
        return
    llm = LLM(str(options.model), dtype="float32", max_model_len=512, enforce_eager=True, enable_prefix_caching=False)
    settings = SamplingParams(temperature=0, max_tokens=options.tokens, logprobs=options.top, prompt_logprobs=2)
    results = llm.generate([{"prompt_token_ids": p.ids} for p in prompts], settings)
    with open(out / "offline-repr.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{result}\n" for result in results)
    with open(out / "offline.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(plain(result)) + "\n" for result in results)
    print(f"{out}/offline.jsonl: {len(results)} answers", flush=True)


def plain(value):
    """An object of vLLM as people dump it: its public attributes, keys of maps becoming strings."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "__len__") and hasattr(value, "__getitem__"):
        return [plain(value[i]) for i in range(len(value))]
    names = getattr(value, "__dict__", None) or {f: getattr(value, f) for f in getattr(type(value), "__dataclass_fields__", {})}
    return {k: plain(v) for k, v in names.items() if not k.startswith("_")}
