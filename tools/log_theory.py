"""The mathematics of docs/theory.md for tools/make_log.py: slow, with mpmath at 130 digits, and plain."""
import math
import struct
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


def point(n):
    return [hexf(float(n))] * 2


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
    """(acceptance, law of the emitted token) by carrying whole vectors through the m attempts."""
    inside = set(d.order[:k])
    if all(abs(x - y) < TINY for x, y in zip(d.p, e.p)):
        return mp.mpf(1), list(d.p)
    p, reach, out, accept = list(d.p), mp.mpf(1), [mp.mpf(0)] * len(d.p), mp.mpf(0)
    for _ in range(m):
        took = [y if i in inside else min(x, y) for i, (x, y) in enumerate(zip(p, e.p))]
        out = [o + reach * t for o, t in zip(out, took)]
        accept += reach * mp.fsum(took)
        reach *= mp.fsum(y - t for y, t in zip(e.p, took))
        if reach < TINY:
            return mp.mpf(1), out
        rest = [plus(x - y) for x, y in zip(p, e.p)]
        p = [x / mp.fsum(rest) for x in rest]
    return accept, [o + reach * x for o, x in zip(out, p)]


def law_topk(d, children, k):
    """The same for point masses; what is tried again (a draw may repeat) has nothing left."""
    out, reach, accept = [mp.mpf(0)] * len(d.p), mp.mpf(1), mp.mpf(0)
    for x in dict.fromkeys(children):
        if d.rank[x] < k:
            out[x] += reach
            return mp.mpf(1), out
        out[x] += d.p[x]  # reach times p/(1 - what was tried)
        accept += d.p[x]
        reach = 1 - accept
    return accept, list(d.p)


def tv_of(a, b):
    total = mp.fsum(abs(x - y) for x, y in zip(a, b)) / 2
    return mp.mpf(0) if total < TINY else total


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


def philox(seed, sequence, t, purpose, child):
    key, x = [seed & 0xFFFFFFFF, seed >> 32], [sequence, t, purpose, child]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return Fraction(((x[0] << 32) | x[1]) >> 11, 1 << 53)
