#!/usr/bin/env python3
"""Row files for `hallmark audit` from the reference vectors, one pair a case, and the command that audits them.

usage: tools/oracle_rows.py FOLDER [VECTORS]      VECTORS: default tests/data/oracle/vectors.json

For case N it writes N.target.npy and N.draft.npy, and where the case has a draft vocabulary N.columns.npy (the draft's logits
of those tokens) and N.ids.json. Standard output: one command a line. Needs nothing but Python.
"""
import json
import pathlib
import struct
import sys


def save_row(path, values):
    """A .npy file of one row of float32."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, %d), }" % len(values)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack("<%df" % len(values), *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    root = pathlib.Path(__file__).resolve().parent.parent
    vectors = sys.argv[2] if len(sys.argv) == 3 else root / "tests/data/oracle/vectors.json"
    folder.mkdir(parents=True, exist_ok=True)
    for number, case in enumerate(json.loads(pathlib.Path(vectors).read_text())):
        draft = [float.fromhex(x) for x in case["draft"]]
        rule = case["rule"] + (":" + ",".join(case["params"]) if case["params"] else "")
        save_row(folder / f"{number}.target.npy", [float.fromhex(x) for x in case["logits"]])
        save_row(folder / f"{number}.draft.npy", draft)
        base = f"hallmark audit --json --rule {rule} --m {case['m']} --temperature {case['temperature']} {folder}/{number}.target.npy"
        print(f"{base} --draft {folder}/{number}.draft.npy")
        if len(case.get("draft_vocab", [])) >= 2:
            save_row(folder / f"{number}.columns.npy", [draft[i] for i in case["draft_vocab"]])
            (folder / f"{number}.ids.json").write_text(json.dumps(case["draft_vocab"]) + "\n")
            print(f"{base} --draft {folder}/{number}.columns.npy --draft-vocab {folder}/{number}.ids.json")


main()
