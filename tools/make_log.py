#!/usr/bin/env python3
"""Writes small certificate logs from scratch, to test `hallmark verify` with.

    tools/make_log.py tests/data/logs/good [NAME...]
    tools/make_log.py tests/data/logs/bad --bad [NAME...] > tests/data/logs/bad/lines.txt

The bad ones have one false thing each; the list says in which line. A second, slow producer: it follows docs/log.md and
docs/theory.md with mpmath at 130 digits, simulates a decoder over random rows, and shares no code with the one in C. Levels are
found by bisection and values are enclosed two ulps wide. The mathematics is in log_theory.py, the decoder in log_decoder.py, the
records in log_maker.py.
"""
import math
import os
import sys

from log_maker import Maker

RULES = ["greedy", "additive:1/10", "multiplicative:3/10", "topm:3", "entropy:3/10,1/2", "nucleus:9/10",
         "topk-delta:4,1/5"]
DIVERGENCES = ["renyi:1/2", "renyi:3", "renyi-reverse:1/3", "renyi-reverse:2", "hellinger", "chi2", "chi2-reverse", "max",
               "spread"]
NO = -math.inf
TIES = [  # equalities that no precision shows (theory.md §8): the draft is a witness, or is as far away as one
    ([1, 0, NO, NO, NO], [0, 0, NO, NO, NO]),  # uniform on a tied set that is the whole support
    ([2, 1, 0, -1, -2], [1, 1, 1, -1, -2]),  # the geometric mean inside
    ([2, 0, 0, -1, -2], [1, 0, 1, -1, -2]),  # the same, with tokens of equal p swapped
    ([0, 0, NO, NO, NO], [3, 3, 3, 3, NO]),  # both uniform: ln 2 and half of ln 4
    ([1, 0, NO, NO, NO], [NO, 0, NO, NO, NO]),  # p without A, when S has an empty token
    ([0.5, 0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0, 0]),  # every threshold is 0
    ([1, 0.5, 0, 0, NO], [1, 1, 0, 0, NO]),  # S raised to the first
    ([3, 2, 1, 0, 0], [3, 2, 1, 0, 0]),  # p itself
]
LOGS = {
    "greedy": dict(),
    "rules": dict(claims=RULES, m=["tree", 1, 2], margin=True, tokens=4, certify_temperature="4/5", top=3),
    "sampled": dict(temperature="4/5", certify_temperature="4/5", seed=20, tokens=8, nodes="all", budget=6,
                    claims=["greedy", "topm:2"], sequences=2),
    "processed": dict(temperature="7/10", certify_temperature="1", top_k=6, top_p="9/10", traversal="cap:1", seed=7,
                      tokens=6, claims=["nucleus:9/10"], m=[2], nodes="all", budget=4),
    "relaxed": dict(acceptance="additive:3/10", claims=["additive:3/10", "entropy:1/5,1/2"], tokens=7, spread=1.0,
                    m=["tree"]),
    "relaxed-sampled": dict(acceptance="topk-delta:3,1/4", claims=["topk-delta:3,1/4"], temperature="4/5",
                            certify_temperature="4/5", tokens=7, spread=1.0, seed=5, traversal="cap:2", depth=3,
                            m=["tree", 13], top=2),
    "special": dict(special=0.9, claims=["greedy", "additive:1/8", "multiplicative:1", "nucleus:1/2", "nucleus:1",
                                         "entropy:1/12,1"], m=["tree", 2], vocab=8, tokens=6, margin=True, seed=9),
    "reordered": dict(reorder=True, seed=3, tokens=5, m=["tree", 9], vocab=9, claims=["topm:1", "topm:2"]),
    "eos": dict(eos=[1, 4, 5, 6], tokens=30, seed=2, nodes="all", budget=5, capacity=64),
    "stopped": dict(stop=2, tokens=9, seed=11, draft=False),
    "levels": dict(claims=["topk-ratio:4,1/3", "absolute:1/6", "regret:3/2", "entropy:1/4,3/5", "entropy:1/20,2",
                           "multiplicative:1/2", "additive:1/7", "topk-delta:2,1/6"],
                   m=["tree", 1, 3], margin=True, universal=True, certify_temperature="5/4", tokens=4, special=0.3,
                   noise=0.4, seed=12, acceptance="topk-ratio:2,1/2"),
    "divergences": dict(claims=["greedy", "nucleus:3/5", "absolute:1/2"], m=["tree", 2], divergences=DIVERGENCES, laws=["iid", "topk"],
                        tokens=5, noise=0.3, seed=13, special=0.4, vocab=7),
    "restricted": dict(claims=["additive:1/5", "regret:1/2", "topm:3"], m=["tree", 1, 4], unscored=[2, 5, 6, 9], universal=True,
                       divergences=["renyi:1/2", "renyi-reverse:3/4", "spread"], laws=["topk", "iid"], tokens=6, noise=0.2, seed=14,
                       vocab=10, special=0.5, nodes="all", budget=4),
    "lenient": dict(acceptance="absolute:1/5", claims=["absolute:1/5", "entropy:1/5,1/2"], temperature="3/4", top_k=5, top_p="19/20",
                    certify_temperature="3/4", tokens=8, spread=1.0, seed=15, traversal="cap:2", depth=3, m=["tree", 2],
                    laws=["topk"], nodes="all", budget=5),
    "audit": dict(rows=9, claims=["greedy", "nucleus:4/5", "entropy:1/8,1/2", "topk-delta:3,1/10"], m=[1, 2], vocab=9, margin=True,
                  universal=True, divergences=["hellinger", "max"], laws=["iid"], seed=16, special=0.3, unscored=[8]),
    "ties": dict(rows=8, pairs=TIES, claims=["greedy", "topm:2", "absolute:1/2"], m=[1, 2, 4], vocab=5, divergences=DIVERGENCES,
                 laws=["iid", "topk"], margin=True, universal=True),
    "audit-target": dict(rows=3, claims=["regret:1"], m=[1], vocab=6, draft=False, divergences=["chi2"], seed=17),
    "standard": dict(acceptance="standard", temperature="1", vocab=9, tokens=8, seed=32, width=2, claims=["greedy", "nucleus:4/5"],
                     m=["tree", 1], laws=["iid", "topk"], traversal="cap:2", depth=3, budget=7),
    "standard-iid": dict(acceptance="standard", proposal="iid", temperature="4/5", certify_temperature="4/5", vocab=8, tokens=9,
                         seed=32, width=2, depth=3, budget=6, nodes="all", claims=["topm:2"], m=["tree", 2],
                         laws=["iid", "topk"], special=0.3, noise=1.5),
    "nucleus": dict(acceptance="nucleus:7/10", temperature="1", vocab=10, tokens=9, seed=67, width=2, depth=2, budget=6,
                    claims=["nucleus:7/10"], m=["tree"], laws=["topk"], noise=1.5, sequences=2),
    "nucleus-one": dict(acceptance="nucleus:9/10", proposal="iid", temperature="1", vocab=8, tokens=10, seed=34, width=1, depth=3,
                        budget=3, claims=["nucleus:9/10"], m=[1], laws=["iid"], noise=1.5),
    "nucleus-iid": dict(acceptance="nucleus:1/2", proposal="iid", temperature="3/2", certify_temperature="3/2", vocab=7, tokens=9,
                        seed=34, width=3, depth=2, budget=6, claims=["nucleus:1/2"], m=["tree"], laws=["iid"], special=0.4,
                        noise=1.5, nodes="all"),
    "tv-budget": dict(acceptance="nucleus:4/5", proposal="iid", temperature="1", vocab=8, tokens=12, seed=36, width=2, depth=2,
                      budget=4, claims=["nucleus:4/5"], m=["tree"], noise=1.5, fidelity=("tv", "2/5"), sequences=2),
    "tv-budget-topk": dict(acceptance="nucleus:4/5", temperature="1", vocab=9, tokens=10, seed=37, width=2, depth=2, budget=6,
                           claims=["nucleus:4/5"], m=["tree"], noise=1.5, fidelity=("tv", "1"), traversal="cap:1", special=0.3),
    "regret-budget": dict(acceptance="additive:3/10", vocab=9, tokens=10, seed=31, claims=["additive:3/10"], m=["tree"],
                          spread=0.7, noise=1.5, fidelity=("regret", "1/2"), sequences=2, nodes="all", budget=5, width=2),
    "root-draw": dict(temperature="1", vocab=8, tokens=9, seed=39, selection="root-draw", nodes="all", budget=5, claims=["greedy"],
                      m=["tree"], traversal="cap:2"),
    "pearl": dict(temperature="1", vocab=8, tokens=8, seed=40, selection="pearl", nodes="all", budget=6, width=2,
                  claims=["topm:2"], m=["tree"], score="frontier:2"),
    "covering": dict(temperature="1", vocab=6, tokens=12, seed=31, selection="covering", traversal="leaf-stop", nodes="all",
                     budget=4, width=2, claims=["topm:2"], m=["tree"]),
    "scored": dict(vocab=8, tokens=9, seed=31, traversal="exhaustive", score="top:7", budget=3, width=2, depth=3,
                   claims=["greedy"], m=["tree"], nodes="all"),
    "leaf-stop": dict(temperature="1/2", certify_temperature="1", vocab=8, tokens=9, seed=43, traversal="leaf-stop",
                      score="frontier:3", budget=5, width=2, claims=["greedy"], m=["tree"], nodes="all"),
    "hashed": dict(keep=False, seed=4, claims=["greedy", "additive:1/10"], margin=True, m=["tree", 2], top=6),
}


# Logs with one false thing each (the lie of Decoder), all else as if it were true.
BAD = {
    "coin-standard": ("standard", "coin"),
    "coin-iid": ("standard-iid", "coin"),
    "residual-standard": ("standard", "residual"),
    "residual-iid": ("standard-iid", "residual"),
    "child-skipped": ("nucleus", "skip"),
    "budget-overspent": ("tv-budget", "overspent"),
    "budget-not-used": ("tv-budget", "relaxed"),
    "regret-overspent": ("regret-budget", "overspent"),
    "charge-small": ("tv-budget", "charge"),
    "e-zero": ("nucleus-iid", "e"),
    "first-not-drawn": ("root-draw", "first"),
    "scored-accepted": ("scored", "scored"),
    "leaf-not-stopped": ("leaf-stop", "leaf"),
}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, bad = sys.argv[1], "--bad" in sys.argv
    wanted = [a for a in sys.argv[2:] if a != "--bad"] or list(BAD if bad else LOGS)
    os.makedirs(folder, exist_ok=True)
    for name in wanted:
        base, lie = BAD[name] if bad else (name, None)
        maker = Maker(folder, name, rows_of=base, lie=lie, **LOGS[base])
        counts = maker.write()
        if bad:
            if maker.lie:
                sys.exit(name + ": nothing to lie about")
            print(name, "line", maker.false_line)
            continue
        words = {}
        for (_, _, word), count in counts.items():
            words[word] = words.get(word, 0) + count
        print(name, os.path.getsize(os.path.join(folder, name + ".jsonl")), words)


if __name__ == "__main__":
    main()
