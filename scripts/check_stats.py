#!/usr/bin/env python3
"""Holds `diesweep stats` against scipy over random cases, and prints the largest deviation of each statistic.

    scripts/check_stats.py [--cases 1000] [--seed 1] [--program target/release/diesweep]

Closed forms must agree to 1e-9, exact p values to 1e-12, relatively; a mean, a median, the end of an interval or d_z relatively to the
largest value that it is formed from, since it may be close to 0. The BCa interval is a bootstrap on both sides and has only to agree within the noise of two times 9,999 resamples.
Without scipy the check is skipped.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from scipy import stats
except ImportError as error:
    print(f"SKIPPED check_stats: {error}")
    sys.exit(0)

CLOSED, EXACT = 1e-9, 1e-12
# Standard errors of the mean between two BCa intervals of normal values: the 2.5% quantile of 9,999 draws is off by sqrt(0.025 * 0.975 / 9999) / 0.0584 =
# 0.027, twice the bias z0 by 2 * sqrt(0.25 / 9999) / 0.399 = 0.025; both, for two intervals, five times over.
BCA = 5 * math.sqrt(2 * (0.027**2 + 0.025**2))


def sample(random, kind, n):
    """Values of the baseline and of another arm, paired."""
    if kind == "decimals":  # ties and zeros
        shared = random.integers(200, 260, n)
        return (shared / 100, (shared + random.integers(-4, 4, n)) / 100)
    scale = 10.0 ** random.uniform(-6, 6)
    offset = 10.0 * scale if kind == "offset" else 0.0
    shared = random.standard_normal(n)
    one = lambda shift: offset + scale * (shared + 0.3 * random.standard_normal(n) + shift)
    return one(0.0), one(random.uniform(-0.5, 0.5))


class Deviations:
    def __init__(self):
        self.worst, self.bounds, self.counts, self.failed = {}, {}, {}, []

    def check(self, name, got, want, bound, scale=None, where=""):
        if want is None or math.isnan(want):
            return
        size = abs(want) if scale is None else scale
        if got is None:
            deviation = math.inf
        else:
            deviation = 0.0 if got == want else abs(got - want) / size if size > 0 else math.inf
        self.counts[name] = self.counts.get(name, 0) + 1
        self.bounds[name] = bound
        self.worst[name] = max(self.worst.get(name, 0.0), deviation)
        if not deviation <= bound:
            self.failed.append(f"{name} {where}: {got} for {want}")


def describe(found, got, values, where):
    n, size = len(values), float(np.max(np.abs(values)))
    found.check("n", got["n"], n, 0.0, where=where)
    found.check("mean", got["mean"], np.mean(values), CLOSED, size, where)
    found.check("median", got["median"], np.median(values), CLOSED, size, where)
    found.check("iqm", got["iqm"], stats.trim_mean(values, 0.25), CLOSED, size, where)
    found.check("min", got["min"], np.min(values), 0.0, where=where)
    found.check("max", got["max"], np.max(values), 0.0, where=where)
    if n > 1:
        found.check("sd", got["sd"], np.std(values, ddof=1), CLOSED, where=where)
        found.check("sem", got["sem"], stats.sem(values), CLOSED, where=where)
        for end, want in zip(got["ci95"], interval(values)):
            found.check("ci95", end, want, CLOSED, size, where)


def interval(values):
    if np.ptp(values) == 0:
        return [values[0]] * 2
    return stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))


def all_signings(d, statistic):
    test = stats.permutation_test((d,), statistic, permutation_type="samples", n_resamples=np.inf, vectorized=True)
    return test.pvalue


def wilcoxon(d):
    kept = d[d != 0]
    if len(kept) == 0:
        return 1.0
    ties = len(np.unique(np.abs(kept))) < len(kept)
    if not ties:
        return stats.wilcoxon(kept, method="exact").pvalue
    if len(kept) <= 12:
        return stats.wilcoxon(kept, method=stats.PermutationMethod(n_resamples=np.inf)).pvalue
    return None


def seeds_needed(effect):
    """The fewest pairs with a power of 0.8 for the two-sided paired t test at 5%, at least 6."""

    def power(n):
        critical, shift = stats.t.ppf(0.975, n - 1), abs(effect) * math.sqrt(n)
        # scipy's lower tail is NaN where it is far below what a double can add to the upper one.
        lower = stats.nct.cdf(-critical, n - 1, shift)
        return stats.nct.sf(critical, n - 1, shift) + (0.0 if math.isnan(lower) else lower)

    few, plenty = 5, 10_000
    if not power(plenty) >= 0.8:
        return None
    while plenty - few > 1:
        middle = (few + plenty) // 2
        few, plenty = (few, middle) if power(middle) >= 0.8 else (middle, plenty)
    return plenty


def holm(p):
    order = np.argsort(p, kind="stable")
    adjusted, largest = np.empty(len(p)), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = largest
    return adjusted


def compare(found, got, a, b, where, with_bca):
    d = b - a
    size = float(max(np.max(np.abs(a)), np.max(np.abs(b))))
    found.check("mean_diff", got["mean_diff"], np.mean(d), CLOSED, size, where)
    # Equal but for the rounding of their decimals: no spread, no t test.
    equal = np.ptp(d) <= 1e-14 * size * len(d)
    if len(d) > 1:
        for end, want in zip(got["ci95"], interval(d)):
            found.check("ci95 of the difference", end, want, CLOSED, size, where)
        if not equal:
            found.check("t_p", got["t_p"], stats.ttest_rel(b, a).pvalue, CLOSED, where=where)
            sd = np.std(d, ddof=1)
            found.check("cohen_dz", got["cohen_dz"], np.mean(d) / sd, CLOSED, float(np.max(np.abs(d)) / sd), where)
    found.check("prob_improvement", got["prob_improvement"], stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)), CLOSED, where=where)
    # Decimals whose differences are equal in meaning and not in bits are for both to tell: whole hundredths.
    whole = np.round(d * 100) if where.startswith("decimals") else d
    if len(d) <= 12:
        p = all_signings(whole, lambda x, axis: np.sum(x, axis=axis)) if np.any(whole) else 1.0
        found.check("sign_flip_p", got["sign_flip_p"], p, EXACT, where=where)
    if not where.startswith("decimals"):
        found.check("wilcoxon_p", got["wilcoxon_p"], wilcoxon(d), EXACT, where=where)
    if not equal and len(d) > 1 and got["cohen_dz"]:
        needed, want = got["seeds_needed"], seeds_needed(got["cohen_dz"])
        found.check("seeds_needed", needed or 0, want or 0, 0.0, where=where)
    if with_bca and len(d) >= 8:
        ends = stats.bootstrap((d,), np.mean, n_resamples=9_999, method="BCa", random_state=1).confidence_interval
        for end, want in zip(got["bca"], ends):
            found.check("bca (in standard errors)", end, want, BCA, float(stats.sem(d)), where)


def tied_wilcoxon(found, program, random, cases):
    """Ties and zeros whose differences are exact in bits: quarters."""
    for case in range(cases):
        n = int(random.integers(2, 13))
        a = random.integers(0, 40, n) / 4
        b = a + random.integers(-4, 5, n) / 4
        got = run(program, {"base": a, "other": b}, random)["verdict"][0]["paired"]
        found.check("wilcoxon_p with ties and zeros", got["wilcoxon_p"], wilcoxon(b - a), EXACT, where=f"ties {case}")


def run(program, arms, random):
    """The program's answer for arms of values, the rows of which come in any order."""
    rows = [f"{arm},{seed},{value!r}" for arm, values in arms.items() for seed, value in enumerate(map(float, values))]
    head, rest = rows[0], rows[1:]
    random.shuffle(rest)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.csv")
        with open(path, "w") as file:
            file.write("\n".join(["arm,seed,loss", head, *rest]) + "\n")
        command = [program, "stats", path, "--arm", "arm", "--seed", "seed", "--metric", "loss", "--baseline", "base", "--json"]
        ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)}: {ended.stderr}")
    return json.loads(ended.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default="target/release/diesweep")
    args = parser.parse_args()
    random, found = np.random.default_rng(args.seed), Deviations()
    for case in range(args.cases):
        kind, n = ["plain", "offset", "decimals"][case % 3], int(random.integers(2, 21))
        a, b = sample(random, kind, n)
        arms = {"base": a, "other": b}
        for extra in range(int(random.integers(0, 3))):
            arms[f"extra{extra}"] = sample(random, kind, n)[1]
        got, where = run(args.program, arms, random), f"{kind} case {case}"
        by_arm = {configuration["arm"]: configuration["values"] for configuration in got["configurations"]}
        for arm, values in arms.items():
            describe(found, by_arm[arm], values, where)
        verdict = {comparison["label"]: comparison for comparison in got["verdict"]}
        for arm in list(arms)[1:]:
            compare(found, verdict[arm]["paired"], a, arms[arm], where, with_bca=kind == "plain" and case % 10 == 0)
        order = list(verdict)
        corrected = holm([verdict[arm]["paired"]["sign_flip_p"] for arm in order])
        for arm, want in zip(order, corrected):
            found.check("holm_p", verdict[arm]["holm_p"], want, EXACT, where=where)
    tied_wilcoxon(found, args.program, random, max(1, args.cases // 4))
    for name, worst in found.worst.items():
        print(f"{name:32} {found.counts[name]:6} values, largest deviation {worst:.2e}, bound {found.bounds[name]:.1e}")
    for failure in found.failed[:20]:
        print(f"FAILED {failure}")
    if found.failed:
        sys.exit(f"{len(found.failed)} values are off")


main()
