#!/usr/bin/env python3
"""Records what other engines log, for `hallmark audit` and `hallmark compare` (docs/engines.md).

    tools/record_engines.py --engine transformers --model DIR -o OUT
    tools/record_engines.py --engine llama.cpp --model DIR --server llama-server --gguf m-f32.gguf \\
        --other-gguf m-q8_0.gguf --draft-gguf m-q8_0.gguf --perplexity llama-perplexity -o OUT
    tools/record_engines.py --engine vllm --model DIR --server vllm -o OUT

Answers are written as they came, one a line (.jsonl) or as streams in a row (.sse); rows of transformers as .safetensors
and .npy.  prompts-ids.jsonl says which ids every engine got; prompts-rendered.jsonl is for `hallmark decode --prompts`.
Nothing is downloaded: engines, models and converted files are the caller's.  Needs transformers (for the tokenizer) and
the engine's own packages or programs.
"""
import argparse
import importlib
from pathlib import Path

import engines_common

MODULES = {"transformers": "engines_transformers", "llama.cpp": "engines_llama", "vllm": "engines_vllm"}
DATA = Path(__file__).resolve().parent.parent / "tests/data/evidence/engines"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=MODULES, required=True)
    parser.add_argument("--model", type=Path, required=True, help="Hugging Face folder: weights, tokenizer, chat template")
    parser.add_argument("--prompts", type=Path, default=DATA / "prompts.jsonl", help="in MT-bench form (default: ours)")
    parser.add_argument("--limit", type=int, help="only the first N prompts")
    parser.add_argument("--few", type=int, default=3, help="prompts in cases that only show a format (default 3)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens per answer (default 64)")
    parser.add_argument("--top", type=int, default=20, help="entries per token (default 20)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--case", action="append", help="only this case (repeatable); the names are those of the files")
    parser.add_argument("--server", help="llama.cpp, vLLM: llama-server or vllm")
    parser.add_argument("--gguf", type=Path, help="llama.cpp: the model")
    parser.add_argument("--other-gguf", type=Path, action="append", default=[], help="llama.cpp: of another type (repeatable)")
    parser.add_argument("--draft-gguf", type=Path, help="llama.cpp: the draft model of speculative decoding")
    parser.add_argument("--speculative", action="append", default=[], metavar="JSON",
                        help="vLLM: a --speculative-config to record besides n-gram lookup (repeatable)")
    parser.add_argument("--perplexity", help="llama.cpp: llama-perplexity")
    parser.add_argument("--text", type=Path, default=DATA / "text.txt", help="llama.cpp: for --perplexity (default: ours)")
    parser.add_argument("-o", dest="out", type=Path, required=True, help="folder to write to")
    options = parser.parse_args()
    if options.engine == "llama.cpp" and not (options.server and options.gguf):
        parser.error("llama.cpp needs --server and --gguf")
    if options.engine == "vllm" and not options.server:
        parser.error("vllm needs --server")
    return options


def main():
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    prompts = engines_common.read_prompts(options.prompts, options.model, options.limit)
    engines_common.write_prompts(prompts, options.out / "prompts-ids.jsonl")
    engines_common.write_rendered(prompts, options.out / "prompts-rendered.jsonl")
    importlib.import_module(MODULES[options.engine]).record(options, prompts, options.out)


if __name__ == "__main__":
    main()
