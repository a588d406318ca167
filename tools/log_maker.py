"""The records of a log, for tools/make_log.py: rows, claims and every field of docs/log.md, with their hashes and chain."""
import hashlib
import json
import math
import os
import random
import struct
from fractions import Fraction

import mpmath as mp

from log_decoder import Decision, Decoder
from log_theory import (TINY, Dist, Divergence, Rule, bisect, enclosure, f32, hexf, kl, law_iid, law_topk, margins, mpq, plus, point,
                        q, radius, thresholds, tv, tv_of, universal)


class Shard:
    def __init__(self, path, vocab, capacity):
        self.rows, self.path, self.vocab, self.capacity = [], path, vocab, capacity

    def add(self, row):
        raw = b"".join(struct.pack("<f", x) for x in row)
        self.rows.append(raw)
        return {"shard": 0, "index": len(self.rows) - 1, "sha256": hashlib.sha256(raw).hexdigest()}

    def write(self):
        rows = self.capacity or len(self.rows)
        head = json.dumps({"logits": {"dtype": "F32", "shape": [rows, self.vocab],
                                      "data_offsets": [0, rows * self.vocab * 4]}}, separators=(",", ":")).encode()
        head += b" " * (-len(head) % 8)
        with open(self.path, "wb") as f:
            f.write(struct.pack("<Q", len(head)) + head + b"".join(self.rows))


class Maker(Decoder):
    """One log. Rows depend on the context only, so a tree's rows agree with plain decoding."""

    def __init__(self, folder, name, **o):
        defaults = dict(vocab=12, claims=["greedy"], m=["tree"], margin=False, acceptance="match", temperature="0",
                        certify_temperature="1", top_k=0, top_p="1", traversal="exhaustive", width=3, depth=2, budget=8,
                        nodes="path", draft=True, sequences=1, tokens=6, top=4, seed=1, eos=[], spread=2.0, noise=0.8,
                        special=0.0, reorder=False, capacity=0, keep=True, stop=None, universal=False, divergences=[],
                        laws=[], unscored=[], rows=0, pairs=[], proposal="topk", selection="draft", score=None, fidelity=None,
                        lie=None, rows_of=name)
        self.__dict__.update({**defaults, **o})
        self.name, self.lines, self.chain = name, [], ""
        self.path = os.path.join(folder, name + ".jsonl")
        shard = lambda kind: Shard(os.path.join(folder, "%s-%s-00000.safetensors" % (name, kind)), self.vocab, self.capacity)
        self.shards = {"target": shard("target"), "draft": shard("draft")}
        self.T, self.Tc = Fraction(self.temperature), Fraction(self.certify_temperature)
        self.rules = [Rule(r) for r in self.claims]
        self.others = [Divergence(x) for x in self.divergences]
        self.cap = int(self.traversal[4:]) if self.traversal.startswith("cap:") else None
        self.counts = {}
        self.dists, self.saved = {}, {}

    def emit(self, record):
        body = json.dumps(record, separators=(",", ":"), ensure_ascii=False)[:-1]
        self.chain = hashlib.sha256((self.chain + body).encode()).hexdigest()
        self.lines.append(body + ',"chain":"' + self.chain + '"}')

    def row(self, kind, context):
        if self.pairs:
            return [f32(x) for x in self.pairs[context[1]][kind == "draft"]]
        rng = random.Random("%s %s %s" % (self.seed, self.rows_of, list(context)))
        row = [f32(rng.gauss(0, self.spread)) for _ in range(self.vocab)]
        if rng.random() < self.special:
            how = rng.randrange(4)
            if how == 0:
                row = [f32(round(x)) for x in row]  # ties
            elif how == 1:
                row = [x if rng.random() < 0.6 or i == 0 else -math.inf for i, x in enumerate(row)]
            elif how == 2:
                row = [f32(1.5)] * self.vocab
            else:
                row = [x if i in (0, 3) else -math.inf for i, x in enumerate(row)]
        if kind == "draft":
            same = rng.random()
            if same < 0.2 * (self.special > 0):
                return [f32(x) for x in row]
            row = [x if math.isinf(x) else f32(x + rng.gauss(0, self.noise)) for x in row]
            if same < 0.3 * (self.special > 0):
                row = [f32(0.25) if math.isinf(x) else x for x in row]
            row = [-math.inf if i in self.unscored else x for i, x in enumerate(row)]
        return row

    def dist(self, kind, context, temperature=None):
        key = kind, tuple(context), temperature or self.Tc
        if key not in self.dists:
            self.dists[key] = Dist(self.row(kind, context), temperature or self.Tc)
        return self.dists[key]

    def reference(self, kind, context, why=None):
        if why:
            return {"why": why}
        key = kind, tuple(context)
        if key not in self.saved:
            self.saved[key] = self.shards[kind].add(self.row(kind, context))
        return self.saved[key] if self.keep else {"why": "not kept", "sha256": self.saved[key]["sha256"]}

    def claim(self, rule, m, d, dq, children, token, why):
        tree = m == "tree"
        m = len(children) if tree else m
        k, V = rule.size(d), self.vocab
        entry = lambda i: [d.order[i], hexf(d.row[d.order[i]])] if 0 <= i < V else None
        c = {"rule": rule.text, "m": m, "m_from": "tree" if tree else "fixed", "k": k}
        if token is not None:
            c["accepts"] = "yes" if d.rank[token] < k else "no"
        c["edge"] = [entry(k - 1), entry(k)]
        if m == 0:
            return {**c, "certified": None, "why": "prefill" if why == "prefill" else "no children"}
        if token is not None:
            r = radius(rule, d, k, token)
            if r is not None:
                c["radius"] = r
            if rule.name == "entropy":
                small = mpq(rule.args[0]) <= mpq(rule.args[1]) * mp.exp(-d.entropy) + TINY
                c["active"] = "eps" if small else "delta"
        star = self.levels(c, d, k, m, V)
        if 0 < k and k + m <= V:
            if self.margin:
                c["margin"] = {n: enclosure(x) for n, x in margins(d, k, m).items()}
            bounds = universal(rule, d, k, m) if self.universal else None
            if bounds:
                c["universal"] = {n: enclosure(x) for n, x in bounds.items()}
        applies = dq and not (tree and set(children) != set(dq.order[:m]))

        def word(x, limit, size, k=k):
            if not applies:
                return "inapplicable"
            return "no" if k == 0 else "vacuous" if k + m > size else "yes" if x < limit - TINY else "no"

        other = {}
        for x in self.others:
            limit = mp.mpf(0) if k == 0 else mp.inf if k + m > V else x.star(d, k, m)
            other[x.text] = {"star": enclosure(limit), "certified": dq and word(x.between(d, dq), limit, V)}
        if other:
            c["divergences"] = other
        if dq is None:
            return {**c, "certified": None, "why": why}
        proposed = children if tree else dq.order[:m]
        c["covered"] = "yes" if any(d.rank[x] < k for x in proposed) else "no"
        divergence = {"klf": kl(d, dq), "klr": kl(dq, d), "tv": tv(d, dq)}
        c["certified"] = {n: word(x, star[n], V) for n, x in divergence.items()}
        if self.laws:
            both = {"iid": lambda: law_iid(d, dq, k, m), "topk": lambda: law_topk(d, proposed, k)}
            c["laws"] = {n: self.law(d, *both[n]()) for n in self.laws}
        scored = [i for i in range(V) if not math.isinf(dq.row[i])]
        if len(scored) < V:
            c["restricted"] = self.restrict(d, dq, scored, k, m, word, divergence)
        return c

    def law(self, d, accept, out):
        return {"accept": enclosure(accept), "e": enclosure(tv_of(out, d.p))}

    def levels(self, c, d, k, m, size):
        """Fills in levels and thresholds; returns the thresholds."""
        if k == 0 or k + m > size:
            star = {n: mp.mpf(0) if k == 0 else mp.inf for n in ("klf", "klr", "tv")}
            c.update({n: enclosure(x) for n, x in star.items()})
        else:
            star = thresholds(d, k, m)
            for n in ("level_f", "tied_f", "level_r", "tied_r", "klf", "klr", "tv"):
                c[n] = star[n] if n.startswith("tied") else enclosure(star[n])
        return star

    def restrict(self, d, dq, scored, k, m, word, divergence):
        """The claim on the draft's vocabulary (theory.md §4)."""
        mass = mp.fsum(d.p[i] for i in scored)
        if mass == 0:
            r = {"k": 0, "mass": enclosure(mass)}
            self.levels(r, None, 0, m, len(scored))
            r["certified"] = {n: word(mp.inf, mp.mpf(0), len(scored), 0) for n in divergence}
            return r
        small, draft = (Dist([x.row[i] for i in scored], self.Tc) for x in (d, dq))
        if all(d.p[i] == 0 for i in range(self.vocab) if i not in scored):
            mass = mp.mpf(1)
        k = sum(i in scored for i in d.order[:k])
        r = {"k": k, "mass": [hexf(1.0)] * 2 if mass == 1 else enclosure(mass), "kl": enclosure(kl(small, draft))}
        limits = self.levels(r, small, k, m, len(scored))
        if 0 < k and k + m <= len(scored):
            limits["klr"] -= mp.log(mass)
            A, S = [d.p[scored[i]] for i in small.order[:k]], [d.p[scored[i]] for i in small.order[k:k + m]]
            up = lambda t: mp.fsum(plus(t - x) for x in S)
            down = lambda t: 1 - mass + mp.fsum(plus(x - t) for x in A)
            if mass < 1:
                limits["tv"] = up(bisect(lambda t: down(t) - up(t), mp.mpf(0), mp.mpf(2)))
            r.update(klr=enclosure(limits["klr"]), tv=enclosure(limits["tv"]))
        values = {**divergence, "klf": kl(small, draft)}
        r["certified"] = {n: word(x, limits[n], len(scored), k) for n, x in values.items()}
        return r

    def describe(self, context, draft_why, children, token, counted):
        """The part that step and node records share."""
        d = self.dist("target", context)
        dq = None if draft_why else self.dist("draft", context)
        out = {"row": self.reference("target", context), "draft_row": self.reference("draft", context, draft_why),
               "top": [[i, hexf(d.row[i])] for i in d.order[: self.top]], "support": self.support(context),
               "lse": enclosure(d.lse), "entropy": enclosure(d.entropy)}
        if dq:
            out.update(kl_pq=enclosure(kl(d, dq)), kl_qp=enclosure(kl(dq, d)), tv=enclosure(tv(d, dq)))
            same = all(abs(x - y) < TINY for x, y in zip(d.p, dq.p))
            both = mp.fsum(min(x, y) for x, y in zip(d.p, dq.p))
            out["standard_accept"] = point(1) if same else enclosure(both)
            if self.acceptance.startswith("nucleus"):
                inside = d.order[: Rule(self.acceptance).size(d)]
                out["nucleus_excess"] = enclosure(mp.fsum(plus(dq.p[i] - d.p[i]) for i in inside))
            if self.others:
                out["divergences"] = {x.text: enclosure(x.between(d, dq)) for x in self.others}
        if token is not None and self.acceptance not in ("match", "standard"):
            out["regret"] = self.regret(d, token)
        out["claims"] = [self.claim(r, m, d, dq, children, token, draft_why) for r in self.rules for m in self.m]
        if counted:
            for i, c in enumerate(out["claims"]):
                for n, word in (c["certified"] or {}).items():
                    key = i, n, word
                    self.counts[key] = self.counts.get(key, 0) + 1
        return out

    def finish(self, token, t):
        if token in self.eos:
            return "eos"
        if self.stop == t:
            return "stop"
        return "length" if t + 1 == self.tokens else None

    def regret(self, d, token):
        return enclosure((mp.mpf(d.first) - d.row[token]) / d.t)

    # One false thing, where it first makes a difference.

    def lying(self, name):
        return self.lie == name

    def told(self):
        self.lie, self.false_line = None, len(self.lines) + 1

    def lie_about(self, name, value, change):
        if not self.lying(name):
            return value
        self.told()
        return change(value)

    def another(self, token):
        return (token + 1) % self.vocab

    def sequence(self, n):
        prompt = [(n + i) % self.vocab for i in range(2)]
        self.emit({"kind": "sequence", "sequence": n, "id": n, "category": "test", "turn": 0, "prompt": prompt,
                   "seed": str(self.seed), "stop": {"eos": self.eos, "max_tokens": self.tokens,
                                                    "strings": [] if self.stop is None else ["x"]}})
        context, t = list(prompt), 0

        def step(head, node_context, why, kids, decision):
            nonlocal t
            record = {"kind": "step", "sequence": n, "t": t, **head,
                      **self.describe(node_context, why, kids, decision.token, True), **decision.fields}
            if self.fidelity:
                record["spent"] = hexf(decision.spent)
            end = self.finish(decision.token, t)
            if end:
                record["finish"] = end
            record["text"] = "é%d" % decision.token
            self.emit(record)
            context.append(decision.token)
            t += 1
            self.steps += 1
            return end

        decision = Decision(self.draw(context, n, 0))
        if self.acceptance not in ("match", "standard") and self.T > 0:
            decision.fields = {"e": point(0), "ratio": point(1)}
        end = step({"round": None, "token": decision.token, "source": "prefill", "node": 0, "depth": 0, "child": None},
                   list(context), "prefill", [], decision)
        number, covered, spent = 0, False, 0.0
        while not end:
            tree = self.grow(list(context), n, t, covered)
            nodes = tree.nodes
            logq = ["0x0p+0"] + [hexf(float(self.dist("draft", nodes[v.parent].context).logp[v.token])) for v in nodes[1:]]
            self.emit({"kind": "round", "sequence": n, "round": number, "t": t, "parent": [v.parent for v in nodes],
                       "token": [v.token for v in nodes], "logq": logq, **({"scored": tree.scored} if tree.scored else {}),
                       **({} if tree.first is None else {"first": tree.first}), "pool": len(nodes),
                       "expected_accept": self.expected(tree, n, t, spent), "charges": [], "run": {"ms": 1.5}})
            self.rounds += 1
            why = lambda v: "no draft model" if not self.draft else None if v.children else "leaf"
            kids = lambda v: [nodes[w].token for w in v.children]
            at, accepted, visited = 0, 0, set()
            while at is not None and not end:
                node = nodes[at]
                decision = self.choose(tree, at, n, t, accepted, spent)
                head = {"round": number, "token": decision.token,
                        "source": "continuation" if decision.to is None else "accepted", "node": at, "depth": node.depth,
                        "child": decision.to}
                visited.add(at)
                end = step(head, node.context, why(node), kids(node), decision)
                at, accepted, spent = decision.to, accepted + 1, decision.spent
            covered = tree.holds(context)
            for v, node in enumerate(nodes) if self.nodes == "all" else ():
                if v not in visited:
                    self.emit({"kind": "node", "sequence": n, "round": number, "node": v, "depth": node.depth,
                               **self.describe(node.context, why(node), kids(node), None, False)})
                    self.node_records += 1
            number += 1

    def audit(self):
        """Row records: every third names the token whose decisions it is about."""
        for n in range(self.rows):
            context = [n % self.vocab, n]
            why = "no draft model" if not self.draft else None
            token = None if n % 3 else self.dist("target", context).order[n % self.vocab]
            record = {"kind": "row", "index": 2 * n, **self.describe(context, why, [], token, True)}
            del record["support"]
            if token is not None:
                record["token"] = token
            self.emit(record)

    def write(self):
        self.rounds = self.steps = self.node_records = 0
        model = {"name": "random", "sha256": "0" * 64, "vocab": self.vocab, "architecture": "none"}
        pattern = lambda kind: "%s-%s-%%05d.safetensors" % (self.name, kind) if self.keep else None
        self.emit({"hallmark": 1, "kind": "header", "claims": self.claims, "m": self.m, "margin": self.margin,
                   **({"universal": True} if self.universal else {}),
                   **({"divergences": self.divergences} if self.divergences else {}),
                   **({"laws": self.laws} if self.laws else {}), "acceptance": self.acceptance, "temperature": q(self.temperature),
                   "certify_temperature": q(self.certify_temperature),
                   "processors": {"top_k": self.top_k, "top_p": q(self.top_p)}, "proposal": self.proposal,
                   "budget": dict(zip(("kind", "limit"), self.fidelity)) if self.fidelity else None,
                   "rng": "philox4x32-10", "top": self.top, "nodes": self.nodes, "target": model,
                   "draft": model if self.draft else None, "tokenizer_sha256": "0" * 64,
                   "decoder": None if self.rows else {"drafter": "random", "width": self.width, "depth": self.depth, "budget": self.budget,
                               "selection": self.selection, "traversal": self.traversal,
                               **({"score": self.score} if self.score else {})},
                   "numerics": {"weights": "none", "accumulate": "none", "backend": "mpmath", "row_source": "foreign"},
                   "rows": {"target": pattern("target"), "draft": pattern("draft") if self.draft else None,
                            "hashed": True},
                   "run": {"host": "test"}})
        self.audit()
        for n in range(0 if self.rows else self.sequences):
            self.sequence(n)
        verdicts = []
        for i, (r, m) in enumerate((r, m) for r in self.claims for m in self.m):
            words = ("yes", "no", "vacuous", "inapplicable", "undecided")
            verdicts.append({"rule": r, "m": m, **{d: {w: self.counts.get((i, d, w), 0) for w in words}
                                                   for d in ("klf", "klr", "tv")}})
        self.emit({"kind": "end", "sequences": 0 if self.rows else self.sequences, "rounds": self.rounds, "steps": self.steps,
                   "nodes": self.node_records, **({"rows": self.rows} if self.rows else {}), "verdicts": verdicts, "undecided": 0})
        with open(self.path, "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines) + "\n")
        for kind, shard in self.shards.items():
            if self.keep and shard.rows:
                shard.write()
        return self.counts
