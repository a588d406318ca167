#!/usr/bin/env python3
"""Writes small certificate logs from scratch, to test `hallmark verify` with.

    tools/make_log.py tests/data/logs/good

A second, slow producer: it follows docs/log.md and docs/theory.md with mpmath at 130 digits, simulates a decoder over
random rows, and shares no code with the one in C. Levels are found by bisection and values are enclosed two ulps wide.
"""
import hashlib
import json
import math
import os
import random
import struct
import sys
from fractions import Fraction

import mpmath as mp

mp.mp.dps = 130
TINY = mp.mpf(10) ** -100  # below this two numbers are taken as equal: rows here are never that close otherwise


def hexf(x):
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    m, e = math.frexp(x)
    if m == 0:
        return "0x0p+0"
    digits = abs(m) * 2
    text = float(digits).hex()
    head = text[: text.index("p")]
    if "." in head:
        head = head.rstrip("0").rstrip(".")
    return ("-" if x < 0 else "") + head + "p%+d" % (e - 1)


def enclosure(x):
    """Two ulps either side; exact zeros and infinities stay points."""
    if mp.isinf(x):
        return [hexf(float(x))] * 2
    if abs(x) < TINY:
        return ["0x0p+0", "0x0p+0"]
    lo = hi = float(x)
    for _ in range(2):
        lo, hi = math.nextafter(lo, -math.inf), math.nextafter(hi, math.inf)
    return [hexf(max(lo, 0.0) if x > 0 else lo), hexf(hi)]


def lower_bound(x):
    """A little below x, with nothing said of what is above."""
    return enclosure(x) if mp.isinf(x) else [hexf(math.nextafter(float(x) * (1 - 1e-9), -math.inf) if x > 0 else 0.0), "inf"]


def q(x):
    return str(Fraction(x))


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def mpq(x):
    return mp.mpf(x.numerator) / x.denominator


class Dist:
    """A row at a temperature."""

    def __init__(self, row, temperature):
        self.row, self.t = row, mpq(temperature)
        self.order = sorted(range(len(row)), key=lambda i: (-row[i], i))
        self.rank = {token: i for i, token in enumerate(self.order)}
        self.first = row[self.order[0]]
        self.w = [mp.mpf(0) if math.isinf(l) else mp.exp((mp.mpf(l) - self.first) / self.t) for l in row]
        self.sum = mp.fsum(self.w)
        self.p = [w / self.sum for w in self.w]
        self.sorted = [self.p[i] for i in self.order]
        self.logp = [mp.mpf("-inf") if w == 0 else (mp.mpf(l) - self.first) / self.t - mp.log(self.sum)
                     for w, l in zip(self.w, row)]
        self.lse = self.first / self.t + mp.log(self.sum)
        self.entropy = -mp.fsum(p * l for p, l in zip(self.p, self.logp) if p > 0)


def kl(a, b):
    if any(x > 0 and y == 0 for x, y in zip(a.p, b.p)):
        return mp.inf
    return mp.fsum(x * (lx - ly) for x, lx, ly in zip(a.p, a.logp, b.logp) if x > 0)


def tv(a, b):
    return mp.fsum(abs(x - y) for x, y in zip(a.p, b.p)) / 2


class Rule:
    def __init__(self, text):
        self.text = text
        self.name, _, rest = text.partition(":")
        self.args = [Fraction(a) for a in rest.replace(":", ",").split(",")] if rest else []

    def accepts(self, d, position):
        p, a = d.sorted[position], self.args
        near = lambda eps: p >= d.sorted[0] - mpq(eps) - TINY
        if self.name == "greedy":
            return position == 0
        if self.name == "topm":
            return position < a[0]
        if self.name == "additive":
            return near(a[0])
        if self.name == "multiplicative":
            return p >= mpq(a[0]) * d.sorted[0] - TINY
        if self.name == "topk-delta":
            return position < a[0] and near(a[1])
        if self.name == "topk-ratio":
            return position < a[0] and p >= mpq(a[1]) * d.sorted[0] - TINY
        if self.name == "absolute":
            return p >= mpq(a[0]) - TINY
        if self.name == "regret":
            return p >= mp.exp(-mpq(a[0])) - TINY
        if self.name == "entropy":
            return p >= mpq(a[0]) - TINY or p >= mpq(a[1]) * mp.exp(-d.entropy) - TINY
        if self.name == "nucleus":
            if a[0] == 1:
                return p > 0
            return position == 0 or mp.fsum(d.sorted[:position]) < mpq(a[0]) - TINY
        raise ValueError(self.text)

    def size(self, d):
        k = 0
        while k < len(d.row) and self.accepts(d, k):
            k += 1
        return k


def bisect(f, lo, hi):
    """The root of a falling function."""
    for _ in range(440):
        mid = (lo + hi) / 2
        if f(mid) > 0:
            lo = mid
        else:
            hi = mid
    return (lo + hi) / 2


def plus(x):
    return x if x > 0 else mp.mpf(0)


def thresholds(d, k, m):
    A, S = d.sorted[:k], d.sorted[k:k + m]
    c = bisect(lambda t: mp.fsum(plus(a - t) for a in A) - mp.fsum(plus(t - s) for s in S), mp.mpf(0), A[0])
    close = lambda x, y: abs(x - y) < mp.mpf(10) ** -70 * x
    tied = [x for x in A if x > c and not close(x, c)], [x for x in S if x < c and not close(x, c)]
    out = {"level_f": c, "tied_f": [len(tied[0]), len(tied[1])]}
    out["klf"] = mp.fsum(x * mp.log(x / c) for part in tied for x in part if x > 0)
    out["tv"] = mp.fsum(plus(a - c) for a in A)
    if S[-1] == 0:
        out["level_r"] = mp.mpf("-inf")
        tied = [x for x in A if x > 0], []
        rest = mp.fsum(d.sorted[k:])
        out["klr"] = mp.inf if rest == 0 else -mp.log(rest)
    else:
        la, ls = [mp.log(a) for a in A], [mp.log(s) for s in S]
        x = bisect(lambda t: mp.fsum(plus(a - t) for a in la) - mp.fsum(plus(t - s) for s in ls), ls[-1], la[0])
        g = mp.exp(x)
        out["level_r"] = x
        tied = [a for a in A if a > g and not close(a, g)], [s for s in S if s < g and not close(s, g)]
        out["klr"] = -mp.log(1 - mp.fsum(y - g for part in tied for y in part))
    out["tied_r"] = [len(tied[0]), len(tied[1])]
    return out


def power_mass(d, k, m, a):
    """Z of the witness of order a (theory.md §2, "Other divergences")."""
    A, S, rest = d.sorted[:k], d.sorted[k:k + m], d.sorted[k + m:]
    if a < 0 and S[-1] == 0:
        u = mp.mpf(0)
    else:
        v = (lambda x: x ** a) if a > 0 else (lambda x: -(x ** a))
        x = bisect(lambda t: mp.fsum(plus(v(y) - t) for y in A) - mp.fsum(plus(t - v(y)) for y in S), v(S[-1]), v(A[0]))
        u = x ** (1 / a) if a > 0 else (-x) ** (1 / a)
    return mp.fsum(min(y, u) for y in A) + mp.fsum(max(y, u) for y in S) + mp.fsum(rest)


class Divergence:
    """One of the header's further divergences."""

    def __init__(self, text):
        self.text = text
        self.name, _, order = text.partition(":")
        self.order = mpq(Fraction(order)) if order else None

    def between(self, d, e):
        pairs = list(zip(d.p, e.p))
        if all(abs(x - y) < TINY for x, y in pairs):
            return mp.mpf(0)
        if self.name.endswith("-reverse"):
            pairs = [(y, x) for x, y in pairs]
        ratios = [mp.inf if y == 0 else mp.log(x / y) if x > 0 else -mp.inf for x, y in pairs if x > 0 or y > 0]
        if self.name == "max":
            return max(ratios)
        if self.name == "spread":
            return max(ratios) - min(ratios)
        if self.name == "hellinger":
            return 1 - mp.fsum(mp.sqrt(x * y) for x, y in pairs)
        A = mp.mpf(2) if self.name.startswith("chi2") else self.order
        if A > 1 and any(y == 0 and x > 0 for x, y in pairs):
            return mp.inf
        total = mp.fsum(x ** A * y ** (1 - A) for x, y in pairs if x > 0 and y > 0)
        if self.name.startswith("chi2"):
            return total - 1
        return mp.inf if total == 0 else mp.log(total) / (A - 1)

    def star(self, d, k, m):
        first, last = d.sorted[0], d.sorted[k + m - 1]
        if abs(first - last) < TINY:
            return mp.mpf(0)
        if self.name == "max":
            return mp.log(1 + mp.fsum(first - s for s in d.sorted[k:k + m]))
        if self.name == "spread":
            return mp.inf if last == 0 else mp.log(first / last)
        if self.name == "hellinger":
            return 1 - mp.sqrt(power_mass(d, k, m, mp.mpf(1) / 2))
        if self.name == "chi2":
            return power_mass(d, k, m, mp.mpf(2)) ** 2 - 1
        a = {"chi2-reverse": mp.mpf(-1), "renyi": self.order}.get(self.name)
        z = power_mass(d, k, m, 1 - self.order if a is None else a)
        if self.name == "chi2-reverse":
            return mp.inf if z == 0 else 1 / z - 1
        if self.name == "renyi":
            return a / (a - 1) * mp.log(z)
        return mp.inf if z == 0 else -mp.log(z)


def law_iid(d, e, k, m):
    """(accept, e) by carrying whole vectors through the m attempts."""
    inside = set(d.order[:k])
    if all(abs(x - y) < TINY for x, y in zip(d.p, e.p)):
        return mp.mpf(1), mp.mpf(0)
    p, reach, out, accept = list(d.p), mp.mpf(1), [mp.mpf(0)] * len(d.p), mp.mpf(0)
    for _ in range(m):
        took = [y if i in inside else min(x, y) for i, (x, y) in enumerate(zip(p, e.p))]
        out = [o + reach * t for o, t in zip(out, took)]
        accept += reach * mp.fsum(took)
        reach *= mp.fsum(y - t for y, t in zip(e.p, took))
        rest = [plus(x - y) for x, y in zip(p, e.p)]
        p = [x / mp.fsum(rest) for x in rest]
        if reach < TINY:
            return mp.mpf(1), tv_of(out, d.p)
    return accept, tv_of([o + reach * x for o, x in zip(out, p)], d.p)


def tv_of(a, b):
    total = mp.fsum(abs(x - y) for x, y in zip(a, b)) / 2
    return mp.mpf(0) if total < TINY else total


def law_topk(d, children, k):
    out, reach, seen = [mp.mpf(0)] * len(d.p), mp.mpf(1), mp.mpf(0)
    accept = mp.mpf(0)
    for x in children:
        if d.rank[x] < k:
            out[x] += reach
            return mp.mpf(1), tv_of(out, d.p)
        out[x] += d.p[x]  # reach times p/(1 - seen)
        accept += d.p[x]
        seen += d.p[x]
        reach = 1 - seen
    return accept, mp.mpf(0)


def universal(rule, d, k, m):
    """The bounds that know the rule's parameter and p_(1) only, or None."""
    p = d.sorted[0]
    if rule.name == "additive":
        y = mpq(rule.args[0])
        u, v = 1 + m * y, 1 - y
        return {"klf": (u * mp.log(u) + m * v * mp.log(v)) / (1 + m), "klr": -(mp.log(u) + m * mp.log(v)) / (1 + m)}
    if rule.name not in ("multiplicative", "entropy", "absolute", "regret"):
        return None
    a = mpq(rule.args[0])
    tau = {"multiplicative": a * p, "absolute": a, "regret": mp.exp(-a)}.get(rule.name)
    if rule.name == "entropy":
        tau = min(a, mpq(rule.args[1]) * mp.exp(-d.entropy))
    if rule.name != "multiplicative" and p <= tau + TINY:
        return None
    tail = mp.fsum(d.sorted[1:])
    s = min(tau, tail / m)
    c = (p + m * s) / (1 + m)
    rest = tail - m * s + (1 + m) * mp.exp((mp.log(p) + m * mp.log(s)) / (1 + m)) if s > 0 else tail
    return {"klf": p * mp.log(p / c) + (m * s * mp.log(s / c) if s > 0 else 0), "klr": mp.inf if rest == 0 else -mp.log(rest)}


def margins(d, k, m):
    y = d.sorted[k - 1] - d.sorted[k]
    u, v = 1 + m * y, 1 - k * y
    zero = abs(v) < TINY
    klf = (k * u * mp.log(u) + (0 if zero else m * v * mp.log(v))) / (k + m)
    klr = mp.inf if zero else -(k * mp.log(u) + m * mp.log(v)) / (k + m)
    return {"gap": y, "klf": klf, "klr": klr, "tv": k * m * y / (k + m)}


def radius(rule, d, k, token):
    """theory.md §6 as an enclosure; a lower bound only for entropy, and for topk-delta and topk-ratio when they reject."""
    l, rank, inside = [mp.mpf(x) for x in d.row], d.rank[token], d.rank[token] < k
    at = lambda i: l[d.order[i]]
    gap = lambda hi, lo: mp.inf if lo >= V or mp.isinf(at(lo)) else (at(hi) - at(lo)) / 2
    V = len(l)
    count = {"greedy": 1, "topm": None, "topk-delta": None, "topk-ratio": None}.get(rule.name, 0)
    if count is None:
        count = int(rule.args[0])

    def additive(eps):
        eps = mpq(eps)
        j = 1 if rank == 0 else 0
        if inside:
            pj = d.sorted[j] if V > 1 else 0
            return mp.inf if pj == 0 else d.t / 2 * mp.log((d.p[token] + eps * (1 - pj)) / ((1 - eps) * pj))
        if mp.isinf(l[token]):
            return mp.inf if eps * sum(w > 0 for w in d.w) < 1 else None
        top = at(0)
        def slack(eta):
            x = mp.exp((l[token] + eta - top) / d.t)
            others = mp.fsum(mp.exp((min(l[i] + eta, top - eta) - top) / d.t)
                             for i in range(V) if i != token and not mp.isinf(l[i]))
            return mp.exp(-eta / d.t) - x - eps * (x + others)
        return bisect(slack, mp.mpf(0), (top - l[token]) / 2)

    def nucleus(P):
        P = mpq(P)
        finite = [i for i in range(V) if not mp.isinf(l[i])]
        def share(eta):
            if inside:
                before = [i for i in finite if i != token and l[i] + eta >= l[token] - eta]
                shift = {i: l[i] + (eta if i in before else -eta) for i in finite}
            else:
                before = [i for i in finite if l[i] - eta > l[token] + eta]
                shift = {i: l[i] - eta if i in before else min(l[i], l[token]) + eta for i in finite}
            w = {i: mp.exp((shift[i] - at(0)) / d.t) for i in finite}
            return mp.fsum(w[i] for i in before) / mp.fsum(w.values()) - P
        if inside and (P == 1 or len(finite) == 1) or mp.isinf(l[token]):
            return mp.inf
        return bisect((lambda e: -share(e)) if inside else share, mp.mpf(0), mp.mpf(200))

    def ratio(alpha):
        shift = d.t * mp.log(mpq(alpha)) / 2
        return gap(rank, 1 if rank == 0 else 0) - shift if inside else gap(0, rank) + shift

    def level(t, one):
        p, others = d.p[token], 1 - d.p[token]
        if p == 0 or others < TINY or one:
            return mp.inf
        return abs(d.t / 2 * mp.log(p * (1 - t) / (t * others)))

    def typical(lam, eta, least):
        """The extremal sum of theory.md §6 for the delta branch of entropy, at noise eta."""
        s, total = eta / d.t, mp.mpf(0)
        for i in range(V):
            if d.p[i] == 0:
                continue
            if i == token:
                ends = [mp.exp(s) * lam, mp.exp(-s) * lam]
                total += d.p[i] * (min(ends) if least else max(ends))
                continue
            v = (l[i] - l[token]) / d.t + (-s if least else s) + lam
            at_ends = [mp.exp(s) * (v + s), mp.exp(-s) * (v - s)]
            if least and -s < -1 - v < s:
                at_ends.append(-mp.exp(-1 - v))
            total += d.p[i] * (min(at_ends) if least else max(at_ends))
        return total

    def entropy(eps, delta):
        if d.p[token] == 0:
            return mp.inf
        lam, yes = mp.log(mpq(delta)), d.p[token] >= mpq(eps) - TINY
        by_level = level(mpq(eps), eps >= 1)
        sign = 1 if inside else -1
        holds = lambda eta: -sign * typical(lam, eta, not inside)
        by_delta = bisect(holds, mp.mpf(0), mp.mpf(64)) if holds(mp.mpf(0)) > 0 else mp.mpf(0)
        return max(by_level if yes else 0, by_delta) if inside else min(by_level, by_delta)

    def rejected(fails, value):
        """The larger of the radii of the failing conditions."""
        return max(([gap(count - 1, rank)] if rank >= count else []) + ([value()] if fails else []))

    name, a = rule.name, rule.args
    p, first = d.p[token], d.sorted[0]
    if name in ("greedy", "topm"):
        return enclosure(mp.inf if inside and k >= V else gap(rank, k) if inside else gap(k - 1, rank))
    if name == "multiplicative":
        return enclosure(ratio(a[0]))
    if name == "additive":
        r = additive(a[0])
        return None if r is None else enclosure(r)
    if name == "absolute":
        return enclosure(level(mpq(a[0]), a[0] == 1))
    if name == "regret":
        return enclosure(level(mp.exp(-mpq(a[0])), a[0] == 0))
    if name == "entropy":
        return lower_bound(entropy(*a))
    if name == "nucleus":
        return enclosure(nucleus(a[0]))
    value = (lambda: additive(a[1])) if name == "topk-delta" else (lambda: ratio(a[1]))
    if inside:
        return enclosure(value() if count >= V else min(value(), gap(rank, count)))
    fails = p < first - mpq(a[1]) - TINY if name == "topk-delta" else p < mpq(a[1]) * first - TINY
    r = rejected(fails, value)
    return None if r is None else lower_bound(r)


def philox(seed, sequence, t):
    key, x = [seed & 0xFFFFFFFF, seed >> 32], [sequence, t, 0, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return Fraction(((x[0] << 32) | x[1]) >> 11, 1 << 53)


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


class Maker:
    """One log. Rows depend on the context only, so a tree's rows agree with plain decoding."""

    def __init__(self, folder, name, **o):
        defaults = dict(vocab=12, claims=["greedy"], m=["tree"], margin=False, acceptance="match", temperature="0",
                        certify_temperature="1", top_k=0, top_p="1", traversal="exhaustive", width=3, depth=2, budget=8,
                        nodes="path", draft=True, sequences=1, tokens=6, top=4, seed=1, eos=[], spread=2.0, noise=0.8,
                        special=0.0, reorder=False, capacity=0, keep=True, stop=None, universal=False, divergences=[],
                        laws=[], unscored=[], rows=0, pairs=[])
        self.o = o = {**defaults, **o}
        self.__dict__.update(o)
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
        rng = random.Random("%s %s %s" % (self.seed, self.name, list(context)))
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

    def support(self, context):
        if self.T == 0:
            return self.vocab
        d = self.dist("target", context, self.T)
        left = min(self.top_k, self.vocab) if self.top_k else self.vocab
        P = Fraction(self.top_p)
        if P == 1:
            return left
        total, n, mass = mp.fsum(d.sorted[:left]), 0, mp.mpf(0)
        while mass < mpq(P) * total - TINY:
            mass += d.sorted[n]
            n += 1
        return n

    def draw(self, context, sequence, t):
        d = self.dist("target", context)
        if self.T == 0:
            return d.order[0]
        d = self.dist("target", context, self.T)
        keep = sorted(d.order[: self.support(context)])
        u, total, sum_ = mpq(philox(self.seed, sequence, t)), mp.fsum(d.p[i] for i in keep), mp.mpf(0)
        for i in keep:
            sum_ += d.p[i]
            if sum_ > u * total:
                return i
        raise ArithmeticError

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
            c["laws"] = {n: dict(zip(("accept", "e"), map(enclosure, both[n]()))) for n in self.laws}
        scored = [i for i in range(V) if not math.isinf(dq.row[i])]
        if len(scored) < V:
            c["restricted"] = self.restrict(d, dq, scored, k, m, word, divergence)
        return c

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
            out["standard_accept"] = enclosure_point(1) if same else enclosure(both)
            if self.others:
                out["divergences"] = {x.text: enclosure(x.between(d, dq)) for x in self.others}
        if token is not None and self.acceptance != "match":
            out["regret"] = enclosure((mp.mpf(d.first) - d.row[token]) / d.t)
        out["claims"] = [self.claim(r, m, d, dq, children, token, draft_why) for r in self.rules for m in self.m]
        if counted:
            for i, c in enumerate(out["claims"]):
                for n, word in (c["certified"] or {}).items():
                    key = i, n, word
                    self.counts[key] = self.counts.get(key, 0) + 1
        return out

    def grow(self, context):
        """Node lists: parent, token, context; children are the draft's first, or others when reordering."""
        nodes = [(-1, context[-1], context)]
        if not self.draft:
            return nodes
        at, depth = 0, {0: 0}
        while at < len(nodes) and len(nodes) <= self.budget:
            if depth[at] < self.depth:
                order = self.dist("draft", nodes[at][2]).order
                picks = order[: self.width] if not self.reorder or at % 2 else order[1: self.width + 1]
                if at:
                    picks = picks[: max(1, self.width - 1)]
                for token in picks[: self.budget + 1 - len(nodes)]:
                    depth[len(nodes)] = depth[at] + 1
                    nodes.append((at, token, nodes[at][2] + [token]))
            at += 1
        return nodes

    def choose(self, context, kids, nodes, sequence, t, accepted):
        """(token, accepted node or None), as docs/log.md "The walk" says."""
        capped = self.cap is not None and accepted >= self.cap
        if self.acceptance == "match":
            y = self.draw(context, sequence, t)
            return y, None if capped else next((v for v in kids if nodes[v][1] == y), None)
        d, rule = self.dist("target", context), Rule(self.acceptance)
        k = rule.size(d)
        good = sorted((d.rank[nodes[v][1]], v) for v in kids if d.rank[nodes[v][1]] < k)
        if good and not capped:
            return nodes[good[0][1]][1], good[0][1]
        return self.draw(context, sequence, t), None

    def expected(self, nodes, children, sequence, t):
        if self.T == 0 or self.acceptance != "match":
            at, n = 0, 0
            while True:
                _, v = self.choose(nodes[at][2], children[at], nodes, sequence, t + n, n)
                if v is None:
                    return enclosure_point(n)
                at, n = v, n + 1
        if self.nodes != "all":
            return None
        reach, depth, total = [mp.mpf(1)], [0], mp.mpf(0)
        for v in range(1, len(nodes)):
            parent, token, _ = nodes[v]
            d = self.dist("target", nodes[parent][2], self.T)
            keep = d.order[: self.support(nodes[parent][2])]
            p = d.p[token] / mp.fsum(d.p[i] for i in keep) if token in keep else mp.mpf(0)
            reach.append(reach[parent] * p)
            depth.append(depth[parent] + 1)
            if self.cap is None or depth[v] <= self.cap:
                total += reach[v]
        return enclosure(total)

    def finish(self, token, t):
        if token in self.eos:
            return "eos"
        if self.stop == t:
            return "stop"
        return "length" if t + 1 == self.tokens else None

    def sequence(self, n):
        prompt = [(n + i) % self.vocab for i in range(2)]
        self.emit({"kind": "sequence", "sequence": n, "id": n, "category": "test", "turn": 0, "prompt": prompt,
                   "seed": str(self.seed), "stop": {"eos": self.eos, "max_tokens": self.tokens,
                                                    "strings": [] if self.stop is None else ["x"]}})
        context, t = list(prompt), 0

        def step(head, node_context, why, kids, token):
            nonlocal t
            record = {"kind": "step", "sequence": n, "t": t, **head, **self.describe(node_context, why, kids, token, True)}
            if self.acceptance != "match" and self.T > 0:
                d = self.dist("target", node_context, self.T)
                keep = d.order[: self.support(node_context)]
                p = d.p[token] / mp.fsum(d.p[i] for i in keep) if token in keep else mp.mpf(0)
                chosen = head["source"] == "accepted"
                record["e"] = enclosure(1 - p) if chosen else enclosure_point(0)
                record["ratio"] = enclosure(p) if chosen else enclosure_point(1)
            end = self.finish(token, t)
            if end:
                record["finish"] = end
            record["text"] = "é%d" % token
            self.emit(record)
            context.append(token)
            t += 1
            self.steps += 1
            return end

        token = self.draw(context, n, 0)
        end = step({"round": None, "token": token, "source": "prefill", "node": 0, "depth": 0, "child": None},
                   list(context), "prefill", [], token)
        number = 0
        while not end:
            nodes = self.grow(list(context))
            children = [[v for v in range(len(nodes)) if nodes[v][0] == u] for u in range(len(nodes))]
            logq = ["0x0p+0"] + [hexf(float(self.dist("draft", nodes[p][2]).logp[x])) for p, x, _ in nodes[1:]]
            self.emit({"kind": "round", "sequence": n, "round": number, "t": t, "parent": [v[0] for v in nodes],
                       "token": [v[1] for v in nodes], "logq": logq, "pool": len(nodes),
                       "expected_accept": self.expected(nodes, children, n, t), "charges": [], "run": {"ms": 1.5}})
            self.rounds += 1
            why = lambda v: "no draft model" if not self.draft else None if children[v] else "leaf"
            at, accepted, depth, visited = 0, 0, 0, set()
            while at is not None and not end:
                kids = [nodes[v][1] for v in children[at]]
                token, to = self.choose(nodes[at][2], children[at], nodes, n, t, accepted)
                head = {"round": number, "token": token, "source": "continuation" if to is None else "accepted",
                        "node": at, "depth": depth, "child": to}
                visited.add(at)
                end = step(head, nodes[at][2], why(at), kids, token)
                at, accepted, depth = to, accepted + 1, depth + 1
            if self.nodes == "all":
                level = [0]
                for v in range(1, len(nodes)):
                    level.append(level[nodes[v][0]] + 1)
                    if v not in visited:
                        kids = [nodes[w][1] for w in children[v]]
                        self.emit({"kind": "node", "sequence": n, "round": number, "node": v, "depth": level[v],
                                   **self.describe(nodes[v][2], why(v), kids, None, False)})
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
                   "processors": {"top_k": self.top_k, "top_p": q(self.top_p)}, "proposal": "topk", "budget": None,
                   "rng": "philox4x32-10", "top": self.top, "nodes": self.nodes, "target": model,
                   "draft": model if self.draft else None, "tokenizer_sha256": "0" * 64,
                   "decoder": None if self.rows else {"drafter": "random", "width": self.width, "depth": self.depth, "budget": self.budget,
                               "selection": "order", "traversal": self.traversal},
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


def enclosure_point(n):
    return [hexf(float(n))] * 2


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
    "hashed": dict(keep=False, seed=4, claims=["greedy", "additive:1/10"], margin=True, m=["tree", 2], top=6),
}


def main():
    folder = sys.argv[1]
    wanted = sys.argv[2:] or list(LOGS)
    os.makedirs(folder, exist_ok=True)
    for name in wanted:
        counts = Maker(folder, name, **LOGS[name]).write()
        words = {}
        for (_, _, word), count in counts.items():
            words[word] = words.get(word, 0) + count
        print(name, os.path.getsize(os.path.join(folder, name + ".jsonl")), words)


if __name__ == "__main__":
    main()
