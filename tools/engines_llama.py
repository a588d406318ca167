"""Records llama.cpp: its server (all endpoints that log probabilities), llama-perplexity's base file, the Python binding."""
import json
import subprocess

from engines_common import ask, chat_bodies, completions_bodies, server

PORT = 18411


def native_bodies(options, prompts, temperature=0, stream=False, **more):
    return [{"prompt": p.ids, "n_predict": options.tokens, "temperature": temperature, "seed": 7, "n_probs": options.top,
             "return_tokens": True, "stream": stream, "cache_prompt": False, **more} for p in prompts]


def cases(options, prompts, few):
    """(name, the server's options, requests at a time, (file, endpoint, bodies) of each request)."""
    plain = ["-m", options.gguf, "-np", "1"]
    native, chat, texts = "/completion", "/v1/chat/completions", "/v1/completions"
    uncached = {"cache_prompt": False}
    result = [
        ("plain", plain, 1, [
            ("completion.jsonl", native, native_bodies(options, prompts)),
            ("completion-cached.jsonl", native, native_bodies(options, prompts, cache_prompt=True)),
            ("completion-post.jsonl", native, native_bodies(options, few, post_sampling_probs=True)),
            ("completion-warm.jsonl", native, native_bodies(options, few, 0.8, top_k=0, top_p=1, min_p=0)),
            ("completion-warm-post.jsonl", native, native_bodies(options, few, 0.8, post_sampling_probs=True)),
            ("completion.sse", native, native_bodies(options, few, stream=True)),
            ("chat.jsonl", chat, chat_bodies(options, prompts, **uncached)),
            ("chat.sse", chat, chat_bodies(options, few, stream=True, **uncached)),
            ("completions.jsonl", texts, completions_bodies(options, few, **uncached)),
            ("completions.sse", texts, completions_bodies(options, few, stream=True, **uncached))]),
        ("parallel", [*plain[:2], "-np", "4"], 4, [("completion.jsonl", native, native_bodies(options, prompts))]),
        ("kv32", [*plain, "-ctk", "f32", "-ctv", "f32", "-fa", "off"], 1,
         [("completion.jsonl", native, native_bodies(options, prompts))]),
    ]
    # A fault on purpose: positions turned by another base than the model was trained with.
    result.append(("rope", [*plain, "--rope-freq-base", "50000"], 1,
                   [("completion.jsonl", native, native_bodies(options, prompts))]))
    for gguf in options.other_gguf:
        result.append((gguf.stem, ["-m", gguf, "-np", "1"], 1, [("completion.jsonl", native, native_bodies(options, prompts))]))
    speculative = [("completion.jsonl", native, native_bodies(options, prompts)),
                   ("completion-post.jsonl", native, native_bodies(options, few, post_sampling_probs=True)),
                   ("completion.sse", native, native_bodies(options, few, stream=True)),
                   ("chat.jsonl", chat, chat_bodies(options, few, **uncached))]
    if options.draft_gguf:
        result.append(("draft", [*plain, "-md", options.draft_gguf, "--spec-type", "draft-simple", "--spec-draft-n-max", "4"],
                      1, speculative))
    result.append(("ngram", [*plain, "--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "3"], 1, speculative[:1]))
    return result


def record(options, prompts, out):
    few = prompts[:options.few]
    for case, arguments, width, requests in cases(options, prompts, few):
        if options.case and case not in options.case:
            continue
        command = [options.server, *arguments, "--port", PORT, "-t", options.threads, "-c", "4096", "--no-warmup"]
        with server([str(c) for c in command], PORT, out / f"{case}.log") as url:
            for name, path, bodies in requests:
                ask(url + path, bodies, out / f"{case}-{name}", width)
    if not options.case or "perplexity" in options.case:
        perplexity(options, out)
    if not options.case or "python" in options.case:
        binding(options, few, out)


def perplexity(options, out):
    """The base file of each model on one text, and what the tool itself says of the divergence between them."""
    if not options.perplexity:
        return
    bases = [options.gguf, *options.other_gguf]
    for gguf in bases:
        command = [options.perplexity, "-m", gguf, "-f", options.text, "-c", "64", "-b", "64", "-t", options.threads,
                   "--kl-divergence-base", out / f"{gguf.stem}.kld"]
        run(command, out / f"{gguf.stem}-perplexity.log")
        if gguf != bases[0]:
            run([*command[:-1], out / f"{bases[0].stem}.kld", "--kl-divergence"], out / f"{gguf.stem}-kl-divergence.log")


def run(command, log):
    with open(log, "w", encoding="utf-8") as file:
        status = subprocess.run([str(c) for c in command], stdout=file, stderr=subprocess.STDOUT).returncode
    print(f"{log}: exit {status}", flush=True)


def binding(options, prompts, out):
    """llama-cpp-python: completions (top_logprobs is a map by text) and chats."""
    try:
        from llama_cpp import Llama
    except ImportError:
        print("llama-cpp-python is not installed: its outputs are left out")
        return
    llm = Llama(str(options.gguf), logits_all=True, n_ctx=512, n_threads=options.threads, verbose=False)
    n = options.tokens
    with open(out / "python-completions.jsonl", "w", encoding="utf-8") as file:
        for p in prompts:
            llm.reset()
            answer = llm.create_completion(p.ids, max_tokens=n, temperature=0, logprobs=options.top, top_k=1, repeat_penalty=1)
            file.write(json.dumps(answer, default=float) + "\n")
    with open(out / "python-chat.jsonl", "w", encoding="utf-8") as file:
        for p in prompts:
            llm.reset()
            answer = llm.create_chat_completion(p.messages, max_tokens=n, temperature=0, logprobs=True,
                                                top_logprobs=options.top, top_k=1, repeat_penalty=1)
            file.write(json.dumps(answer, default=float) + "\n")
    print(f"{out}/python-*.jsonl: {len(prompts)} answers each", flush=True)
