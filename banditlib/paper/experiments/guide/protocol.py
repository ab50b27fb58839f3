"""What is run for the guide and how it is judged, written down before the first run."""

from __future__ import annotations

RATIOS = {
    "fixed": (0.0, 0.5, 1.0, 2.0, 4.0),
    "fresh": (0.0, 1.0, 2.0, 4.0),
    "separation": (0.0, 1.0, 2.0, 4.0),
}
DIM, DELTA, SIGMA, LAM = 8, 0.2, 0.25, 1.0
ROUNDS = {"fixed": 4000, "fresh": 1000, "lower bound": 4000, "table": 1000, "asirra": 2000}
TESTS, ARMS = 50, 32
FEW = ("fresh", "separation", "digits", "asirra")
TUNE_SEED, REPORT_SEED = 2025, 2026
RANGE = 2.0  # all expected rewards lie between -RANGE and RANGE
WRONG = tuple(2.0**e for e in range(-4, 5))

TEXT = """\
**Problems.** Where nothing else is said: d = 8, gap Δ = 0.2, noise σ = 0.25, and misspecification
ζ = zΔ/√d for several z.

- *fixed*: the paper's synthetic problem made smaller, 20 unit vectors with a gap between 0.19 and
  0.21 and misspecification ±ζ at random; z = 0, 1/2, 1, 2, 4; 4,000 rounds.
- *fresh*: 5 new unit vectors in every round, drawn again until the gap is at least 0.2; the
  misspecification is ζ times the sign of x₁x₂, the same function in all rounds; z = 0, 1, 2, 4;
  1,000 rounds.
- *separation*: lessons and tests as in the chapter on data selection, 50 tests; z = 0 (the lessons
  of z = 1, paid honestly), 1, 2, 4.
- *lower bound*: 32 nearly orthogonal arms in 16 dimensions, of which two pay, Δ = 0.25; z is what
  it is; 4,000 rounds.
- *tables*: iris, wine, breast cancer and digits of scikit-learn (digits: its first 16 principal
  components), columns standardised, with an intercept, rows of norm 1; an arm for each class,
  reward 1 for the right one, no noise; 1,000 rounds.
- *Asirra*: cats and dogs on the first 15 principal components of their features and an intercept,
  all pictures, no noise; 2,000 rounds.

**Policies.** Each has four settings, all with λ = 1. OFUL, SupLinUCB, layered DS-OFUL, LSW (which
is told ζ) and the robust linear bandit (which is told σ): β = 0.1, 0.3, 1, 3. Thompson sampling:
v = 0.03, 0.1, 0.3, 1. DS-OFUL, which is told Δ: Γ = Δ/(2√d) and 2Δ/√d, each with β = 0.3 and 1.
Weighted OFUL: α = 0.05 and 0.2, each with β = 0.3 and 1. UCB: α = σ²/8, σ²/2, 2σ², 8σ². Phased
elimination: δ = 0.01 and the assumed deviation σ/30, σ/10, σ/3, σ. Policies that need fixed arms or
ζ are left out where there are none; Thompson sampling also on digits, where its draws cost most,
and with LSW on separation, where the chapter on data selection has both.

**Tuning.** A policy's setting for a problem at one z is the one of least mean regret on 8 runs with
another seed and other instances. Only this setting's 16 other runs are reported. (On fresh,
separation, digits and Asirra: 4 and 8.)

**Judging.** Regret: the mean at the end, with its standard error; policies are paired, for they see
the same contexts and noise. Tail: a run is *lost* if over the last quarter it loses Δ/2 or more on
average, per test on separation and per round elsewhere. Two policies are *distinguished* if the
mean of the paired differences of their regret is more than twice its standard error; otherwise the
guide calls them indistinguishable. Time per decision: a live agent, measured apart.

**A wrong Δ.** DS-OFUL with β = 1 and Γ = cΔ/√d for c = 1/16, 1/8, ..., 16, on fixed, fresh and
separation at z = 1.

**Seen before.** To learn how long cells take, those of *fixed* at z = 1 were run once, and their
results were seen. Numbers of rounds, runs and ratios were then lowered to save time.

**Added later.** Certified LinUCB, with γ = 0.1, 0.3, 1, 3 and the interval from −2 to 2, which
holds all expected rewards, was added when all other results were known, and before any run of its
own on these problems.
"""
"""The protocol in words; the chapter quotes it."""
