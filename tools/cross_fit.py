#!/usr/bin/env python3
"""Baselines that learn from recordings what the target's own row would tell (docs/study.md, group 4).

    hallmark select --candidates FILE... | tools/cross_fit.py [--budget B]... [--resamples N] [--seed S] [--greedy]

Each baseline replaces draft factors by fitted ones and then selects as `draft` does. It is fitted on one half of the
prompts and judged on the other, both ways, so nothing is judged on what it was fitted to:

  first, isotonic / Platt   the first factor, calibrated: q -> p
  all, isotonic / Platt     every factor, calibrated
  reranker                  the first factor by logistic regression on the draft's figures and the context's
  reranker, rows            likewise, with the probabilities that kept rows at other addresses give

Prints Markdown: mean E[A] over draft, exact from the recorded target probabilities, with a 95 % interval that resamples
prompts within tasks; draft, root and oracle stand beside. Needs numpy and scikit-learn.
"""
import argparse
import csv
import sys

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

LEAST = 1e-6  # of a fitted factor: what was never seen is not impossible


class Round:
    """Arrays of one round's candidates, in pool order."""

    def __init__(self, key, lines, greedy):
        self.prompt = key[:2]
        number = lambda name: np.array([float(x[name] or "nan") for x in lines])
        self.parent = number("parent").astype(int)
        self.logq = number("logq")
        likeliest = number("likeliest")
        self.target = likeliest if greedy else number("p")
        self.first = np.flatnonzero(self.parent < 0)
        self.t = float(lines[0]["t"])
        self.cached = number("cached_p"), number("cached_likeliest"), number("cached_age")
        self.preceding = number("preceding_p"), number("preceding_likeliest")
        self.levels = []  # candidates by depth: parents are always one level up
        depth = np.zeros(len(lines), int)
        for i, parent in enumerate(self.parent):
            depth[i] = 1 if parent < 0 else depth[parent] + 1
        for level in range(1, depth.max(initial=0) + 1):
            self.levels.append(np.flatnonzero(depth == level))
        self.reach = self.along(self.target, np.multiply, 1.0)
        self.drafted = np.isfinite(self.along(self.logq, np.add, 0.0))

    def along(self, step, combine, start):
        """Sums or products of steps along each path."""
        out = np.array(step, float)
        for level, at in enumerate(self.levels):
            out[at] = combine(out[self.parent[at]] if level else start, out[at])
        return out

    def expected(self, logs, budgets):
        """E[A] of the best candidates by sums of logs, at each budget; ties by pool index, as in decode/pool.h."""
        score = self.along(logs, np.add, 0.0)
        score[~self.drafted] = -np.inf
        order = np.lexsort((np.arange(len(score)), -score))
        order = order[np.isfinite(score[order])]
        gain = np.concatenate(([0.0], np.cumsum(self.reach[order])))
        return [gain[min(b, len(order))] for b in budgets]


def read(stream, greedy):
    studies, key, lines, about = {}, None, [], None

    def finish():
        if lines:
            studies.setdefault(about, []).append(Round(key, lines, greedy or about[2] == "0"))

    for line in csv.DictReader(stream):
        prompt = line["prompt"] or "sequence " + line["sequence"]
        here = line["task"], prompt, line["sequence"], line["round"]
        if here != key or (line["target"], line["drafter"], line["temperature"]) != about:
            finish()
            key, lines, about = here, [], (line["target"], line["drafter"], line["temperature"])
        lines.append(line)
    finish()
    return studies


# ---- what is fitted

def soft_labels(x, share):
    """Each example twice, for and against, weighted by the target's probability."""
    return np.concatenate((x, x)), np.repeat((1, 0), len(x)), np.concatenate((share, 1 - share))


def logistic(x, share):
    if share.min() == share.max() or not len(x):
        return lambda z: np.full(len(z), share.mean() if len(share) else 0.5)
    features, label, weight = soft_labels(x, share)
    mean, scale = x.mean(0), x.std(0)
    scale[scale == 0] = 1
    keep = weight > 0
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit(((features - mean) / scale)[keep], label[keep], sample_weight=weight[keep])
    return lambda z: model.predict_proba((z - mean) / scale)[:, 1]


def log_odds(logq):
    q = np.clip(np.exp(logq), LEAST, 1 - LEAST)
    return np.log(q / (1 - q))[:, None]


def isotonic(logq, share):
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(np.exp(logq), share)
    return lambda z: model.predict(np.exp(z))


def platt(logq, share):
    model = logistic(log_odds(logq), share)
    return lambda z: model(log_odds(z))


def log_of(p):
    return np.log(np.clip(np.nan_to_num(p), LEAST, 1))


def features(r, rows):
    """Of the candidates of level 1: the draft's figures, the context's, and with `rows` those of rows elsewhere."""
    logq = np.maximum(r.logq[r.first], np.log(LEAST))
    q = np.exp(logq)
    entropy = -(q * logq).sum()
    columns = [logq, q, np.arange(len(q)), logq - logq.max(initial=-99), np.full(len(q), entropy), np.full(len(q), q.sum()),
               np.full(len(q), np.log1p(r.t)), logq * entropy]
    if rows:
        p, likeliest, age = (x[r.first] for x in r.cached)
        there = np.isfinite(p)
        columns += [there, log_of(p) * there, np.nan_to_num(likeliest), np.nan_to_num(1 / age)]
        p, likeliest = (x[r.first] for x in r.preceding)
        there = np.isfinite(p)
        columns += [there, log_of(p) * there, np.nan_to_num(likeliest)]
    return np.stack([np.asarray(c, float) for c in columns], 1)


def fit(rounds):
    """Functions from a round to the logs of its factors."""
    with_level = [r for r in rounds if len(r.first)]
    first_q = np.concatenate([r.logq[r.first] for r in with_level])
    first_p = np.concatenate([r.target[r.first] for r in with_level])
    all_q = np.concatenate([r.logq for r in with_level])
    all_p = np.concatenate([r.target for r in with_level])
    made = {}

    def first(model):
        def logs(r):
            out = r.logq.copy()
            out[r.first] = log_of(model(r.logq[r.first]))
            return out
        return logs

    for name, kind in (("isotonic", isotonic), ("Platt", platt)):
        made["first, " + name] = first(kind(first_q, first_p))
        every = kind(all_q, all_p)
        made["all, " + name] = lambda r, every=every: log_of(every(r.logq))
    for name, rows in (("reranker", False), ("reranker, rows", True)):
        model = logistic(np.concatenate([features(r, rows) for r in with_level]), first_p)

        def logs(r, model=model, rows=rows):
            out = r.logq.copy()
            out[r.first] = log_of(model(features(r, rows)))
            return out
        made[name] = logs
    return made


def exact(depth):
    """The target's own factors down to a depth."""
    def logs(r):
        out = r.logq.copy()
        with np.errstate(divide="ignore"):
            for at in r.levels[:depth]:
                out[at] = np.log(r.target[at])
        return out
    return logs


# ---- judging

def halves(rounds, random):
    """0 or 1 for each prompt, half of every task's."""
    side = {}
    for task in sorted({r.prompt[0] for r in rounds}):
        prompts = sorted({r.prompt for r in rounds if r.prompt[0] == task})
        for place, i in enumerate(random.permutation(len(prompts))):
            side[prompts[i]] = place % 2
    return side


def judge(rounds, budgets, random):
    """{baseline: [rounds][budgets] of E[A]}"""
    side = halves(rounds, random)
    values = {"draft": [], "root": [], "oracle": []}
    fitted = [fit([r for r in rounds if side[r.prompt] != half]) for half in (0, 1)]
    for r in rounds:
        rules = {"draft": exact(0), "root": exact(1), "oracle": exact(None), **fitted[side[r.prompt]]}
        for name, logs in rules.items():
            values.setdefault(name, []).append(r.expected(logs(r), budgets))
    return {name: np.array(v) for name, v in values.items()}


def intervals(rounds, difference, resamples, random):
    """Mean with tasks of equal weight, and its 95 % interval over prompts, by column."""
    prompts = sorted({r.prompt for r in rounds})
    index = {p: i for i, p in enumerate(prompts)}
    sums, counts = np.zeros((len(prompts), difference.shape[1])), np.zeros(len(prompts))
    for r, d in zip(rounds, difference):
        sums[index[r.prompt]] += d
        counts[index[r.prompt]] += 1
    tasks = [[index[p] for p in prompts if p[0] == task] for task in sorted({p[0] for p in prompts})]
    mean = lambda chosen: np.mean([sums[c].sum(0) / counts[c].sum() for c in chosen], 0)
    again = [mean([random.choice(t, len(t)) for t in tasks]) for _ in range(resamples)]
    return mean(tasks), np.percentile(again, 2.5, 0), np.percentile(again, 97.5, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, action="append")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--greedy", action="store_true", help="the target takes its likeliest token")
    options = parser.parse_args()
    budgets = options.budget or [8, 59]
    csv.field_size_limit(1 << 20)
    for (target, drafter, temperature), rounds in read(sys.stdin, options.greedy).items():
        if len({r.prompt for r in rounds}) < 2:
            sys.exit(f"cross_fit: {target}: expected at least 2 prompts, found 1: there are no halves")
        random = np.random.default_rng(options.seed)
        values = judge(rounds, budgets, random)
        choice = "greedy" if options.greedy or temperature == "0" else "drawn"
        print(f"\n### {target}, drafter {drafter}, {choice}: fitted baselines\n")
        print(f"E[A] over draft. Decoded at temperature {temperature}; {len(rounds)} rounds, "
              f"{len({r.prompt for r in rounds})} prompts, halves fitted crosswise.\n")
        print("| |" + "".join(f" B = {b} |" for b in budgets))
        print("|---|" + "---|" * len(budgets))
        for name in [n for n in values if n not in ("draft", "root", "oracle")] + ["root", "oracle"]:
            mean, low, high = intervals(rounds, values[name] - values["draft"], options.resamples, random)
            cells = "".join(f" {m:.3f} [{a:.3f}, {b:.3f}] |" for m, a, b in zip(mean, low, high))
            print(f"| {name} |{cells}")


if __name__ == "__main__":
    main()
