#!/usr/bin/env python3
"""Makes the tokenizers and golden ids of tests/data/tokenizer with the `tokenizers` library (0.23.3).

For each family a tiny tokenizer is trained on the text below, and encodes texts.txt.  Files, one case a line:

    texts.txt            a text, UTF-8 in hexadecimal
    FAMILY/tokenizer.json
    FAMILY/ids.txt       ids of each text, then a tab and the decoded text in hexadecimal (= when it is the text)
    FAMILY/plain.txt     for texts with '<': index, tab, ids when special tokens count as text
    FAMILY/decode.txt    random ids, tab, their decoded text in hexadecimal
    chat.json            conversations, and their ids by each family's chat template

Everything is seeded: the same library version writes the same bytes.

    pip install tokenizers==0.23.3 && tools/make_tokenizer_goldens.py tests/data/tokenizer
"""
import json
import random
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
CORPUS = """
The quick brown fox jumps over the lazy dog; it's what they'll do, we've seen, I'm sure you'd agree, they're quick.
IT'S WHAT THEY'LL DO. Numbers: 1 12 123 1234 12345 3.14159 2,718,281 0x1F 1e-9. In 2026 there were 365 days.
def encode(text, size):\n    for i in range(size):\n        if text[i] == ' ':\n            return i\n    return -1\n
Ünïcödé: café naïve résumé Ångström Łódź œuvre Straße. Tiếng Việt có nhiều dấu. Český jazyk, Türkçe, Íslenska.
Съешь же ещё этих мягких французских булок, да выпей чаю. Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.
אני אוהב לקרוא ספרים. أنا أحب قراءة الكتب. मैं किताबें पढ़ता हूँ। ฉันชอบอ่านหนังสือ
我喜欢读书，他也喜欢。日本語の文章もあります。カタカナとひらがな。한국어 문장도 있습니다. 123个 ４５６ ١٢٣ १२३
😀 😃 👩‍👩‍👧‍👦 👍🏽 🇫🇷 🏳️‍🌈 ❤️ © ® ™ € £ ¥ ½ ² Ⅷ → ⇒ ∑ ∞ ≠
<html><body class="x">&amp; {"key": [1, 2, 3], "b": null} // comment /* more */ #include <stdio.h>
\t\ttabs\tand  double   triple    spaces\r\nwindows\r\nlines\n\n\nblank lines
""" * 3

HAND = [
    "", " ", "  ", "   ", "a", " a", "a ", "  a  b   c    d", "\n", "\n\n", " \n", "\n ", " \n \n ", "\r\n", "\r\r\n\n", "\t", "\t\t",
    "a\tb", "a \tb", "\t a", "x\r\ny", "x \r\n y", "x  \n", "end   ", "end\n\n\n", "   \n   x", "a\u00a0b", "a\u2003b",
    "a\u3000b", "a\u0085b", "\u0085\u0085", "a\u200bb", "a\u200db", "a\u180eb", "a\ufeffb", "\ufeffstart", "a\u2028b\u2029c",
    "\u1680x", "\u205f\u202f", " \u00a0 \u3000 x", "\x00", "a\x00b", "\x01\x02\x7f", "\x1c\x1d\x1e\x1f", "a\x0b\x0cb",
    "it's", "IT'S", "It'S", "we'LL we'll", "I'VE i've", "they'RE", "I'M i'm", "I'D", "don'T", "'s", "''s", "'ſ it'ſ", "it’s",
    "'K", "x'\u212a", "'", "''", "a'b'c", "'tis 'twas", "o'clock'll've",
    "0", "12", "123", "1234", "12345678901234567890", " 1 2 3", "a1b22c333", "٠١٢٣", "१२३४", "１２３４", "½⅓²³¹", "ⅧⅫ", "①②", "一二三",
    "𝟘𝟙𝟚", "𐒠𐒡", "3.14", "-1", "1,000,000", "1e10", "0xff", "\U0001e5f1\U0001e5fa", "\U000116d0x", "\U00011de0", "\U00016ff4",
    "é", "e\u0301", "E\u0301COLE", "ﬁ", "Å", "\u212b", "A\u030a", "ấ", "a\u0302\u0301", "a\u0301\u0302", "\u0344", "\u0958",
    "q\u0307\u0323", "q\u0323\u0307", "\u1e9b\u0323", "가", "\u1100\u1161", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u0301", "\u0301\u0301a",
    "\u2126\u212a", "\ufb1d", "\U0001d15e", "\U00011935\U00011930", "\U00011382\U000113c9", "a\u0349\u1acc", "a\u1acc\u0349",
    "a\u0315\u0300\u05ae\u0062", "\u0f71\u0f72\u0f74", "\u0c46\u0c56", "a\u0c3c\u0316", "\u0ddc\u0dd9\u0dcf",
    "👩‍👩‍👧‍👦", "👍🏽", "🇫🇷🇩🇪", "🏳️‍🌈", "❤️", "☺", "⌚︎", "1️⃣", "#️⃣", "😀😀😀", "a😀b", " 😀 ",
    "我喜欢读书", "日本語", "カタカナ", "ひらがな", "한국어", "𠀀𠀁", "𪛖𫜴", "\U00031350\U000323af", "\U0002ebf0", "。，、", "「」", "你好 world",
    "שלום עולם", "مرحبا بالعالم", "\u202eabc\u202c", "نَّ", "हिन्दी", "ไทย", "ქართული", "ᏣᎳᎩ", "ᬅᬓ᭄ᬱᬭ", "ꯃꯤꯇꯩ", "\u13a0\uab70", "\ua7cb\u1c89",
    "\U00010400\U00010428", "\U0001f600\U0001f64f", "\ue000\uf8ff", "\U000f0000\U0010fffd", "\U000e0001\U000e0020", "\ufffd", "\ufffe\uffff",
    "\U0001ffff\U0010ffff", "\ufdd0", "\U00013460", "\U00016d40\U00016d70", "\U00011f04\U00011f50", "\u0378\u0379",
    "a" * 300, " " * 300, "\n" * 200, "ab" * 200, "0" * 100, "é" * 150, "e\u0301" * 80, "😀" * 40, "!?" * 100, " \n" * 60, "\t " * 60, "a b " * 60,
    "-" * 64, "=" * 80, "the " * 60, "The quick brown fox jumps over the lazy dog.", "def f(x):\n    return x + 1\n\n\nclass A:\n\tpass\n",
    "{\"a\": [1, 2.5, null], \"b\": \"\\u00e9\\n\"}", "http://example.org/a?b=c&d=%20#e", "C:\\path\\to\\file.txt", "a_b-c.d/e:f;g,h!i?j",
    "$100 €50 £20", "snake_case CamelCase SCREAMING_CASE", "x=y+z*w/(u-v)%t", "....", "...\n\n", " ...", "a...b", "!\n!", ",\r\n,", "-foo,bar--baz",
    "fooBarBaz HTTPServer", "aeiou bcd", "a,b,,c", "１,２", "x1y2", "no-break\u2011hyphen", "soft\u00adhyphen", "¿Qué? ¡Sí!", "«guillemets»",
]
SPECIAL_TEXTS = [
    "{0}", "{0}{0}", "a{0}b", " {0} ", "  {0}  x", "\n{0}\n", "x {0}", "{0} x", "{0}\t{1}", "{0}{1}", "{1} {0} {1}", "user\n{0}hi{1}\n", "{0}é", "e\u0301{0}\u0301",
    "<{0}>", "{0}'s", "12{0}34", " {1}  {0}", "{0} {0}  {0}", "\u00a0{0}\u3000{1}\u2003y", "<|{0}|>", "{0}\u200b{1}",
]


def random_texts(count, seed):
    rng = random.Random(seed)
    pieces = HAND[1:] + ["'s", "'LL", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u0085", "\u2003"] * 4
    ranges = [(0x20, 0x7f), (0x20, 0x7f), (0xa0, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700), (0x800, 0xe00), (0x1100, 0x1200),
              (0x1ab0, 0x1b00), (0x1dc0, 0x2070), (0x2070, 0x2c00), (0x3000, 0x3400), (0x4e00, 0xa000), (0xac00, 0xd7a4), (0xe000, 0xfb00),
              (0xfb00, 0x10000), (0x10000, 0x11000), (0x11000, 0x12000), (0x16000, 0x17000), (0x1b000, 0x1c000), (0x1d000, 0x1f000), (0x1f000, 0x20000),
              (0x20000, 0x32400), (0xe0000, 0xe0200), (0x100000, 0x110000)]
    for _ in range(count):
        kind = rng.random()
        if kind < 0.35:
            yield "".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randrange(1, 14)))
        elif kind < 0.5:
            low, high = rng.choice(ranges)
            yield "".join(rng.choice([chr(rng.randrange(low, high)), " ", "a", "1"]) for _ in range(rng.randrange(1, 16)))
        elif kind < 0.6:
            yield "".join(rng.choice(" \t\n\r\x0b\x0c\u0085\u00a0\u2003\u2028\u3000ab1'.") for _ in range(rng.randrange(1, 24)))
        elif kind < 0.7:
            yield "e" + "".join(chr(rng.choice([rng.randrange(0x300, 0x370), rng.randrange(0x1ab0, 0x1ad0), 0x61, 0x323, 0x5b0, 0x94d]))
                                for _ in range(rng.randrange(1, 12)))
        else:
            yield "".join(p for p in (rng.choice(pieces) for _ in range(rng.randrange(1, 6))) if len(p) < 40)


def make_texts():
    texts = list(HAND)
    for pair in (["<|endoftext|>", "<|im_start|>"], ["<|begin_of_text|>", "<|eot_id|>"], ["<tool_call>", "<think>"], ["<mask>", "<strip>"], ["Å<é>", "[X ]"]):
        texts += [t.format(*pair) for t in SPECIAL_TEXTS]
    texts += list(random_texts(1800, 20260))
    return list(dict.fromkeys(texts))


def special(text, **more):
    return AddedToken(text, special=True, normalized=False, **more)


def train(pre_tokenizer, first, vocab, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=first, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(CORPUS.splitlines(keepends=True), trainer)
    return tokenizer


def byte_level(prefix=False, regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert=invert)


def make_families():
    sequence = pre_tokenizers.Sequence
    yield "gpt2", train(byte_level(regex=True), [AddedToken("<|endoftext|>", special=True, normalized=True)], 700)
    qwen2 = train(sequence([split(Regex(QWEN2)), byte_level()]), [], 800, normalizers.NFC())
    qwen2.add_special_tokens([special(t) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    qwen2.add_tokens([AddedToken(t, special=False, normalized=False) for t in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    yield "qwen2", qwen2
    llama3 = train(sequence([split(Regex(LLAMA3)), byte_level()]), [], 800, ignore_merges=True)
    llama3.add_special_tokens([special(t) for t in ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")])
    begin = llama3.token_to_id("<|begin_of_text|>")
    llama3.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                      special_tokens=[("<|begin_of_text|>", begin)])])
    yield "llama3", llama3
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<issue_start>", "<jupyter_start>", "<empty_output>"]
    yield "smollm2", train(sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(regex=True)]), [special(t) for t in names], 700)
    # Parts that the four families do not use, and merges that do not use up the vocabulary.
    prefix = train(byte_level(prefix=True, regex=True), [special("<mask>", lstrip=True), special("<strip>", rstrip=True), special("[X ]", lstrip=True, rstrip=True)], 400)
    yield "prefix", prefix
    behaviors = train(sequence([split("-", "merged_with_previous"), split(Regex("[aeiou]+|1*"), "merged_with_next"), split(",", "removed"), split(Regex(r"[A-Z]|\s"), "contiguous"),
                                pre_tokenizers.Digits(individual_digits=False), split(Regex(r"\p{L}{4}"), "isolated", invert=True), byte_level()]), [], 400,
                      normalizers.Sequence([normalizers.NFC()]))
    behaviors.add_tokens([AddedToken("A\u030a<e\u0301>", normalized=True), AddedToken("[X ]", normalized=True, lstrip=True)])
    yield "behaviors", behaviors
    regex = train(sequence([split(Regex(r"(?<=[a-z])(?=[A-Z])|\p{Han}++|[^\S\n]+|(?>\d+)(?!\w)|[\w\-\u00e9\x{1f600}-\x{1f64f}]+?(?=\p{P})|\P{L}?\p{Lu}\p{^N}*?\v|\x41b")), byte_level()]), [], 400)
    yield "regex", regex


# The chat templates of the families, as text: control tokens are cut out of it when it is encoded.
def chatml(messages, system=None):
    if system and messages[0][0] != "system":
        messages = [("system", system), *messages]
    return "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in messages) + "<|im_start|>assistant\n"


def llama3_chat(messages):
    turn = "<|start_header_id|>{}<|end_header_id|>\n\n"
    return ("<|begin_of_text|>" + "".join(turn.format(role) + content.strip() + "<|eot_id|>" for role, content in messages)
            + turn.format("assistant"))


CHATS = [
    [("user", "Hello")],
    [("system", "Be brief."), ("user", "What's 12+34?")],
    [("user", "  padded \n"), ("assistant", "Yes.\n\n"), ("user", "\u00a0e\u0301\u3000")],
    [("system", ""), ("user", ""), ("assistant", "\n"), ("user", "'s it?")],
]


def write_chats(path, folder):
    smollm = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    render = {"qwen2": chatml, "smollm2": lambda m: chatml(m, smollm), "llama3": llama3_chat}
    chats = []
    for messages in CHATS:
        ids = {name: Tokenizer.from_file(str(folder / name / "tokenizer.json")).encode(f(messages), add_special_tokens=False).ids
               for name, f in render.items()}
        chats.append(dict(messages=[dict(role=r, content=c) for r, c in messages], **ids))
    path.write_text(json.dumps(chats) + "\n")


def joined(ids):
    return " ".join(map(str, ids))


def write_family(folder, tokenizer, texts, seed):
    folder.mkdir(parents=True, exist_ok=True)
    data = json.loads(tokenizer.to_str())
    if folder.name in ("gpt2", "prefix"):  # the older spelling of merges
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    (folder / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False) + "\n")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    lines = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        lines.append(f"{joined(ids)}\t{'=' if decoded == text else decoded.encode().hex()}\n")
    (folder / "ids.txt").write_text("".join(lines))
    if all(token["special"] for token in data["added_tokens"]):
        tokenizer.encode_special_tokens = True
        (folder / "plain.txt").write_text("".join(
            f"{i}\t{joined(tokenizer.encode(t, add_special_tokens=False).ids)}\n" for i, t in enumerate(texts) if "<" in t or "[X" in t))
    rng = random.Random(seed)
    size = tokenizer.get_vocab_size()
    lists = [[rng.randrange(size) if rng.random() < 0.5 else rng.randrange(256) for _ in range(rng.randrange(1, 12))] for _ in range(250)]
    (folder / "decode.txt").write_text("".join(
        f"{joined(ids)}\t{tokenizer.decode(ids, skip_special_tokens=False).encode().hex()}\n" for ids in lists))


def main():
    out = Path(sys.argv[1])
    texts = make_texts()
    out.mkdir(parents=True, exist_ok=True)
    (out / "texts.txt").write_text("".join(t.encode().hex() + "\n" for t in texts))
    for seed, (name, tokenizer) in enumerate(make_families()):
        small = name in ("prefix", "behaviors", "regex")
        write_family(out / name, tokenizer, texts[:450] if small else texts, seed)
    write_chats(out / "chat.json", out)


if __name__ == "__main__":
    main()
