#!/usr/bin/env python3
"""Writes the binary samples of tests/data/evidence: base files as llama-perplexity writes them, and files of rows.

The numbers are ours and small; float32 arithmetic is done as the writer does it. Good files first, then one thing wrong in each.
Run from the source folder: tools/make_evidence_samples.py
"""
import json
import pathlib
import struct

import numpy as np

OUT = pathlib.Path("tests/data/evidence")
F = np.float32


def kld_row(logits):
    """scale, lowest and codes of one row of float32 logits."""
    logits = np.asarray(logits, F)
    most = logits.max()
    least = max(logits.min(), F(most - F(16)))
    total = float(np.sum(np.exp(logits - most).astype(np.float64)))
    lowest = F(F(least - most) - F(np.log(total)))
    scale = F(F(most - least) / F(65535))
    codes = np.zeros(len(logits), np.uint16)
    if scale:
        inverse = F(F(1) / scale)
        codes = np.where(logits > least, np.rint((inverse * (logits - least)).astype(F)), 0).astype(np.uint16)
    row = struct.pack("<ff", scale, lowest) + codes.astype("<u2").tobytes()
    return row + b"\0\0" * (len(logits) % 2)


def kld(context, vocab, chunks, tokens, rows, magic=b"_logits_"):
    head = magic + struct.pack("<iii", context, vocab, chunks)
    return head + np.asarray(tokens, "<i4").tobytes() + b"".join(rows)


def npy(array):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (array.dtype.str, array.shape)
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.tobytes()


def safetensors(tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        kind = {"<f4": "F32", "<f2": "F16"}[array.dtype.str]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write(folder, name, data):
    (OUT / folder).mkdir(parents=True, exist_ok=True)
    (OUT / folder / name).write_bytes(data)


def write_kld():
    logits = [[3.0, 1.0, -2.5, 0.25, -20.0], [0.5, 0.5, 0.5, 0.5, 0.5], [-1.0, 7.0, 6.5, -9.5, -9.0],
              [2.0, 0.0, 0.125, 1.5, -14.5], [-3.0, -3.5, 4.0, 1.0, 0.0], [10.0, -30.0, 9.0, 8.0, -6.25]]
    tokens = [0, 3, 1, 2, 4, 3, 0, 1, 2, 2, 1, 0, 3, 0, 2, 3]  # two chunks of eight, the second begins otherwise
    rows = [kld_row(l) for l in logits]
    good = kld(8, 5, 2, tokens, rows)
    start = len(good) - len(b"".join(rows))
    write("llama.cpp-kld", "good.kld", good)
    write("llama.cpp-kld", "even.kld", kld(6, 4, 1, [1, 0, 3, 2, 1, 0], [kld_row(l[:4]) for l in logits[:2]]))
    write("llama.cpp-kld", "killed.kld", good[:-11])  # the writer died in the last row
    write("llama.cpp-kld", "longer.kld", good + b"\0\0\0")
    write("llama.cpp-kld", "no-chunks.kld", kld(8, 5, 0, [], []))
    bad = bytearray(good)
    bad[start:start + 4] = struct.pack("<f", float("nan"))
    bad[start + 20 + 4:start + 20 + 8] = struct.pack("<f", float("inf"))
    bad[start + 40:start + 44] = struct.pack("<f", -1.0)
    write("llama.cpp-kld", "not-numbers.kld", bytes(bad))
    write("llama.cpp-kld", "bad-ids.kld", kld(8, 5, 2, tokens[:5] + [5, -7] + tokens[7:], rows))
    write("llama.cpp-kld", "short-text.kld", b"_logits_" + struct.pack("<i", 512))
    write("llama.cpp-kld", "context.kld", kld(1, 5, 2, tokens, rows))
    write("llama.cpp-kld", "vocabulary.kld", kld(8, -5, 2, tokens, rows))
    write("llama.cpp-kld", "chunks.kld", kld(8, 5, -1, tokens, rows))
    write("llama.cpp-kld", "tokens-cut.kld", good[:40])
    write("llama.cpp-kld", "huge.kld", kld(2**31 - 1, 2**31 - 1, 2**31 - 1, tokens, rows))
    write("llama.cpp-kld", "wide.kld", kld(8, 2**31 - 1, 2, tokens, rows))


def write_rows():
    rows = np.array([[1.5, -2.0, 0.25], [-np.inf, 4.0, 4.0], [0.0, 0.0, np.nan]], F)
    write("rows", "good.npy", npy(rows))
    write("rows", "half.npy", npy(rows[:2].astype("<f2")))
    write("rows", "good.safetensors", safetensors({"logits": rows[:2]}))
    write("rows", "named.safetensors", safetensors({"draft": rows[1:2], "target": rows[:1]}))
    write("rows", "none.npy", npy(rows[:0]))
    write("rows", "cut.npy", npy(rows)[:-4])
    write("rows", "cube.npy", npy(np.zeros((2, 2, 2), F)))


if __name__ == "__main__":
    write_kld()
    write_rows()
