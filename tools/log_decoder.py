"""The simulated decoder of tools/make_log.py: trees, draws, budgets and the walk, after docs/log.md."""
import math
from fractions import Fraction

import mpmath as mp

from log_theory import Rule, TINY, enclosure, law_iid, law_topk, mpq, philox, plus, point, tv_of

TARGET, DRAFT, COIN, RESIDUAL = range(4)  # purposes of random numbers


class Node:
    def __init__(self, parent, token, context, depth):
        self.parent, self.token, self.context, self.depth, self.children = parent, token, context, depth, []


class Tree:
    """Nodes in log order; the last `scored` of them are nobody's children."""

    def __init__(self, context):
        self.nodes, self.scored, self.first = [Node(-1, context[-1], context, 0)], 0, None

    def add(self, parent, token):
        at = self.nodes[parent]
        self.nodes.append(Node(parent, token, at.context + [token], at.depth + 1))
        return len(self.nodes) - 1

    def size(self):
        return len(self.nodes) - 1

    def close(self):
        self.verified = len(self.nodes) - self.scored
        for v in range(1, self.verified):
            self.nodes[self.nodes[v].parent].children.append(v)
        return self

    def holds(self, context):
        return any(n.context == context for n in self.nodes)


def up_sum(a, b):
    """a + b in double, rounded upward."""
    s = a + b
    return s if Fraction(s) >= Fraction(a) + Fraction(b) else math.nextafter(s, math.inf)


class Decision:
    """What happened at a node: the emitted token, the child it came from, and the fields of the step that say so."""

    def __init__(self, token, to=None, spent=0.0, **fields):
        self.token, self.to, self.spent, self.fields = token, to, spent, fields


class Decoder:
    """Mixed into Maker, whose options and rows it uses."""

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

    def uniform(self, sequence, t, purpose, child):
        return mpq(philox(self.seed, sequence, t, purpose, child))

    def pick(self, p, among, u):
        """The least id of `among` whose prefix has more than the share u."""
        total, sum_ = mp.fsum(p[i] for i in among), mp.mpf(0)
        for i in sorted(among):
            sum_ += p[i]
            if sum_ > u * total:
                return i
        raise ArithmeticError

    def draw(self, context, sequence, t):
        if self.T == 0:
            return self.dist("target", context).order[0]
        d = self.dist("target", context, self.T)
        return self.pick(d.p, d.order[: self.support(context)], self.uniform(sequence, t, TARGET, 0))

    # ---- trees

    def widen(self, tree, at):
        """The children of a node under the proposal topk: the draft's first, or others when reordering."""
        order = self.dist("draft", tree.nodes[at].context).order
        picks = order[: self.width] if not self.reorder or at % 2 else order[1: self.width + 1]
        if at:
            picks = picks[: max(1, self.width - 1)]
        for token in picks[: self.budget - tree.size()]:
            tree.add(at, token)

    def spread_out(self, tree, at=0):
        while at < len(tree.nodes) and tree.size() < self.budget:
            if tree.nodes[at].depth < self.depth:
                self.widen(tree, at)
            at += 1

    def spine(self, tree, sequence, t):
        """The proposal iid: only first children have children."""
        at = 0
        while tree.nodes[at].depth < self.depth and tree.size() + self.width <= self.budget:
            node = tree.nodes[at]
            d = self.dist("draft", node.context)
            drawn = [self.pick(d.p, range(self.vocab), self.uniform(sequence, t + node.depth, DRAFT, j))
                     for j in range(self.width)]
            at = [tree.add(at, token) for token in drawn][0]

    def score_further(self, tree):
        """Nodes that are only scored: under verified ones (frontier), or under scored ones too (top)."""
        kind, _, count = self.score.partition(":")
        wanted = int(count) if kind == "frontier" else int(count) - tree.size()
        verified = len(tree.nodes)
        for rank in range(self.width + 1):
            at = 0
            while at < (verified if kind == "frontier" else len(tree.nodes)) and tree.scored < wanted:
                node = tree.nodes[at]
                token = self.dist("draft", node.context).order[rank]
                if node.depth < self.depth + 1 and not tree.holds(node.context + [token]):
                    tree.add(at, token)
                    tree.scored += 1
                at += 1

    def grow(self, context, sequence, t, covered):
        tree = Tree(context)
        if not self.draft:
            return tree.close()
        drawn = self.selection in ("root-draw", "pearl") or self.selection == "covering" and covered
        if self.proposal == "iid":
            self.spine(tree, sequence, t)
        elif drawn:
            tree.first = self.lie_about("first", self.draw(context, sequence, t), self.another)
            tree.add(0, tree.first)
            if self.selection != "pearl":
                self.spread_out(tree, 1)
            else:
                whole = Tree(context)
                self.spread_out(whole)
                kept = {0: 0}
                for v, node in enumerate(whole.nodes[1:], 1):
                    if node.depth == 1 and node.token == tree.first:
                        kept[v] = 1
                    elif node.depth > 1 and node.parent in kept:
                        kept[v] = tree.add(kept[node.parent], node.token)
        else:
            self.spread_out(tree)
        if self.score:
            self.score_further(tree)
        return tree.close()

    # ---- the walk

    def reserve(self):
        """R of "Fidelity budgets"."""
        B, V = self.budget, self.vocab
        return Fraction(self.tokens * ((B + 1) * V + B), 1 << 53)

    def affordable(self, spent, charge):
        """(in force, spent afterwards) for a charge as it is logged."""
        s = up_sum(spent, float.fromhex(charge[1]))
        kind, limit = self.fidelity
        fits = Fraction(s) + (self.reserve() if kind == "tv" else 0) <= Fraction(limit)
        if not fits and self.lying("overspent") or fits and self.lying("relaxed"):
            fits = not fits
            self.told()
        return fits, s if fits else spent

    def by_match(self, node, tree, sequence, t, capped, spent):
        y = self.draw(node.context, sequence, t)
        kids = list(node.children)
        if self.lying("scored"):
            extra = [v for v in range(tree.verified, len(tree.nodes)) if tree.nodes[tree.nodes[v].parent] is node]
            if any(tree.nodes[v].token == y for v in extra):
                kids += extra
                self.told()
        return Decision(y, None if capped else next((v for v in kids if tree.nodes[v].token == y), None), spent)

    def by_rule(self, node, tree, sequence, t, capped, spent):
        d, rule = self.dist("target", node.context), Rule(self.acceptance)
        k, fields = rule.size(d), {}
        good = sorted((d.rank[tree.nodes[v].token], v) for v in node.children if d.rank[tree.nodes[v].token] < k)
        best = good[0][1] if good and not capped else None
        if best is not None and self.fidelity:
            fields["charge"] = self.regret(d, tree.nodes[best].token)
            fields["relaxed"], spent = self.affordable(spent, fields["charge"])
            if not fields["relaxed"]:
                best = None
        token = self.draw(node.context, sequence, t) if best is None else tree.nodes[best].token
        if self.T > 0:
            law = self.dist("target", node.context, self.T)
            keep = law.order[: self.support(node.context)]
            p = law.p[token] / mp.fsum(law.p[i] for i in keep) if token in keep else mp.mpf(0)
            fields["e"] = point(0) if best is None else enclosure(1 - p)
            fields["ratio"] = point(1) if best is None else enclosure(p)
        return Decision(token, best, spent, **fields)

    def proposed(self, d, dq, tokens, k):
        """(acceptance, law of the emitted token) of children tried in order."""
        return law_iid(d, dq, k, len(tokens)) if self.proposal == "iid" else law_topk(d, tokens, k)

    def try_children(self, d, dq, tokens, k, sequence, t):
        """(index accepted or None, residual) with the coins of position t."""
        p = list(d.p)
        for j, x in enumerate(tokens):
            q = dq.p[x] if self.proposal == "iid" else 1
            if j == 0 and len(tokens) > 1 and self.lying("skip") and d.rank[x] < k:
                self.told()  # as if it were not there
                continue
            heads = d.rank[x] < k or self.uniform(sequence, t, COIN, j) * q < p[x]
            if d.rank[x] >= k:
                heads = self.lie_about("coin", heads, lambda b: not b)
            if heads:
                return j, p
            rest = [plus(a - b) for a, b in zip(p, dq.p)] if self.proposal == "iid" else [0 if i == x else a for i, a in enumerate(p)]
            p = [a / mp.fsum(rest) for a in rest]
        return None, p

    def by_speculation(self, node, tree, sequence, t, capped, spent):
        d, dq = self.dist("target", node.context), self.dist("draft", node.context)
        tokens = [tree.nodes[v].token for v in node.children]
        nucleus = self.acceptance != "standard"
        law = {"e": point(0), "ratio": point(1)} if nucleus else {}
        if not tokens or capped:
            return Decision(self.draw(node.context, sequence, t), None, spent, **law)
        k = Rule(self.acceptance).size(d) if nucleus else 0
        fields = {}
        if self.fidelity:
            e = enclosure(tv_of(self.proposed(d, dq, tokens, k)[1], d.p))
            if e != point(0) and self.lying("charge"):
                e = enclosure(tv_of(self.proposed(d, dq, tokens, k)[1], d.p) * 3 / 4)
                self.told()
            fields["charge"] = e
            fields["relaxed"], spent = self.affordable(spent, e)
            k = k if fields["relaxed"] else 0
        accept, out = self.proposed(d, dq, tokens, k)
        at, rest = self.try_children(d, dq, tokens, k, sequence, t)
        if at is None:
            token = self.pick(rest, [i for i in range(self.vocab) if rest[i] > 0], self.uniform(sequence, t, RESIDUAL, 0))
            token = self.lie_about("residual", token, self.another)
        else:
            token = tokens[at]
        fields["accept"] = enclosure(accept)
        if nucleus:
            fields["accept_standard"] = enclosure(self.proposed(d, dq, tokens, 0)[0])
            e = tv_of(out, d.p)
            if e:
                law = {"e": fields["charge"] if self.fidelity else enclosure(e), "ratio": enclosure(d.p[token] / out[token])}
                law["e"] = self.lie_about("e", law["e"], lambda _: point(0))
        return Decision(token, None if at is None else node.children[at], spent, **fields, **law)

    def choose(self, tree, at, sequence, t, accepted, spent):
        node = tree.nodes[at]
        capped = self.cap is not None and accepted >= self.cap
        if self.acceptance == "match":
            way = self.by_match
        elif self.acceptance == "standard" or self.acceptance.startswith("nucleus"):
            way = self.by_speculation
        else:
            way = self.by_rule
        decision = way(node, tree, sequence, t, capped, spent)
        if decision.to is not None and self.traversal == "leaf-stop" and not tree.nodes[decision.to].children:
            if self.lying("leaf"):
                self.told()
            else:
                decision.to = None
        return decision

    def expected(self, tree, sequence, t, spent):
        """docs/theory.md §7, or None."""
        if self.acceptance == "standard" or self.acceptance.startswith("nucleus"):
            return None
        if self.T == 0 or self.acceptance != "match":
            at, n = 0, 0
            lie, self.lie = self.lie, None
            while True:
                decision = self.choose(tree, at, sequence, t + n, n, spent)
                if decision.to is None:
                    self.lie = lie
                    return point(n)
                at, n, spent = decision.to, n + 1, decision.spent
        if self.nodes != "all":
            return None
        reach, total = [mp.mpf(1)], mp.mpf(0)
        for v, node in enumerate(tree.nodes[1: tree.verified], 1):
            above = tree.nodes[node.parent].context
            d = self.dist("target", above, self.T)
            keep = d.order[: self.support(above)]
            p = d.p[node.token] / mp.fsum(d.p[i] for i in keep) if node.token in keep else mp.mpf(0)
            reach.append(reach[node.parent] * (1 if v == 1 and tree.first is not None else p))
            if (self.cap is None or node.depth <= self.cap) and (self.traversal != "leaf-stop" or node.children):
                total += reach[v]
        return enclosure(total)
