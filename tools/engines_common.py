"""What the recorders of tools/record_engines.py share: prompts, the requests that OpenAI-shaped servers answer, servers."""
import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor


class Prompt:
    """A question, its chat as text, and the ids of that text."""

    def __init__(self, record, tokenizer):
        self.id, self.category = record["question_id"], record.get("category", "")
        self.messages = [{"role": "user", "content": record["turns"][0]}]
        self.text = tokenizer.apply_chat_template(self.messages, tokenize=False, add_generation_prompt=True)
        self.ids = tokenizer(self.text, add_special_tokens=False).input_ids


def read_prompts(path, model, limit):
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(model)
    with open(path, encoding="utf-8") as lines:
        return [Prompt(json.loads(line), tokenizer) for line in lines if line.strip()][:limit]


def write_prompts(prompts, path):
    """Which ids the engines got: those of other programs must be the same for rows to be comparable."""
    with open(path, "w", encoding="utf-8") as out:
        for p in prompts:
            out.write(json.dumps({"id": p.id, "category": p.category, "text": p.text, "ids": p.ids}, ensure_ascii=False) + "\n")


def write_rendered(prompts, path):
    """The rendered chats as raw prompts in MT-bench form, for `hallmark decode --prompts` without --chat."""
    with open(path, "w", encoding="utf-8") as out:
        for p in prompts:
            record = {"question_id": p.id, "category": p.category, "turns": [p.text]}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def server(command, port, log, patience=300):
    """Runs a server until the block ends; the block starts when GET /health answers 200."""
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        for _ in range(patience):
            if process.poll() is not None:
                raise SystemExit(f"record_engines: {command[0]} ended with {process.returncode}; see {log}")
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200:
                    break
            time.sleep(1)
        else:
            raise SystemExit(f"record_engines: {command[0]} did not answer within {patience} s; see {log}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def post(url, body):
    """The body of the answer, as it came."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read()
    except urllib.error.HTTPError as refused:
        raise SystemExit(f"record_engines: {url}: {refused.code} {refused.read().decode(errors='replace')[:500]}")


def ask(url, bodies, path, width=1):
    """Posts the bodies, `width` at a time, and writes the answers in their order: one a line, or streams in a row."""
    with ThreadPoolExecutor(width) as pool:
        answers = list(pool.map(lambda body: post(url, body), bodies))
    with open(path, "wb") as out:
        for answer in answers:
            out.write(answer if answer.startswith(b"data:") else answer.rstrip(b"\n") + b"\n")
    print(f"{path}: {len(answers)} answers", flush=True)


def chat_bodies(options, prompts, temperature=0, stream=False, **more):
    return [with_stream({"messages": p.messages, "max_tokens": options.tokens, "temperature": temperature, "seed": 7,
                         "logprobs": True, "top_logprobs": options.top, **more}, stream) for p in prompts]


def completions_bodies(options, prompts, temperature=0, stream=False, **more):
    return [with_stream({"prompt": p.ids, "max_tokens": options.tokens, "temperature": temperature, "seed": 7,
                         "logprobs": options.top, **more}, stream) for p in prompts]


def with_stream(body, stream):
    return {**body, "stream": True, "stream_options": {"include_usage": True}} if stream else body
