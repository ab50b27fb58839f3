"""The synthetic experiment: other implementations agree, cells stand alone, digests hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditlib as bl
from banditlib.paper import store
from banditlib.paper.bench import plain_loops as plain
from banditlib.paper.experiments import base
from banditlib.paper.experiments.synthetic import cells as synthetic
from banditlib.paper.experiments.synthetic import table as table_1

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 1500


def instance(number: int = 0) -> bl.problems.FixedArms:
    return synthetic.problem_of(synthetic.PROBLEMS["gap"], number)


def engine_arms(policies: list[dict[str, Any]], noise: np.ndarray, number: int = 0) -> np.ndarray:
    run = bl.simulate(
        instance(number),
        [synthetic.policy_of(policy) for policy in policies],
        noise.shape[1],
        len(noise),
        noise=noise,
        record=("arms",),
        progress=False,
    )
    assert run.arms is not None
    return run.arms[0]


# --- other implementations ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=pytest.mark.slow if row in ("sup", "rlb") else ())
        for row in synthetic.ROWS
        if row != "sup-theorem"
    ],
)
def test_plain_loops_take_the_engine_s_decisions(row: str) -> None:
    rounds = {"lsw": 800, "sup": 1500}.get(row, ROUNDS)
    noise = np.random.default_rng(3).standard_normal((4, rounds))
    policies = synthetic.grid(row, betas=(1.0, 3.0), lams=(1.0, 10.0))
    assert len(policies) <= len(noise)
    arms = engine_arms(policies, noise)
    for i, policy in enumerate(policies):  # each with noise of its own
        assert plain.trajectory(policy, instance(), noise[i]) == arms[i, i].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("row", ["ds 0", "ds 0.05", "rlb", "sup"])
def test_plain_loops_at_full_length(row: str) -> None:
    noise = np.random.default_rng(4).standard_normal((2, synthetic.ROUNDS))
    policies = synthetic.grid(row, betas=(1.0,), lams=(1.0, 3.0))
    for policy, arms in zip(policies, engine_arms(policies, noise, number=1), strict=True):
        for trial in range(2):
            assert plain.trajectory(policy, instance(1), noise[trial]) == arms[trial].tolist()


def inline(chapter: str, *names: str) -> dict[str, Any]:
    """The definitions of these names as a chapter prints them, executed."""
    text = (ROOT / "notebooks" / f"{chapter}.md").read_text()
    cells = re.findall(r"```\{code-cell\}.*?\n(.*?)```", text, flags=re.DOTALL)
    space: dict[str, Any] = {"np": np}
    exec("from collections import defaultdict\nfrom typing import NamedTuple", space)
    wanted = [rf"^def {n}\(|^class {n}\b|^{n} = " for n in names]
    for cell in cells:
        if any(re.search(pattern, cell, flags=re.MULTILINE) for pattern in wanted):
            exec(re.sub(r"\A---\n.*?\n---\n", "", cell, flags=re.DOTALL), space)
    return space


@pytest.mark.parametrize("Gamma", synthetic.GAMMAS)
def test_the_chapter_s_own_ds_oful_takes_the_engine_s_decisions(Gamma: float) -> None:
    code = inline("ds-oful", "TAU", "first_best", "Round", "ds_oful")
    noise = np.random.default_rng(5).standard_normal((1, 1200))
    (arms,) = engine_arms([synthetic.ds_oful(Gamma, 3.0, 1.0)], noise)
    X, reward = instance().X, instance().reward
    rounds = code["ds_oful"](
        lambda k: X, lambda k, a: reward[a] + noise[0, k - 1], 1200, Gamma, 3.0, 1.0
    )
    assert [r.arm for r in rounds] == arms[0].tolist()


def test_the_chapter_s_own_sup_lin_ucb_takes_the_engine_s_decisions() -> None:
    code = inline("sup-lin-ucb", "TAU", "first_best", "one_round", "run")
    noise = np.random.default_rng(6).standard_normal((1, 1200))
    (arms,) = engine_arms([{"name": "SupLinUCB", "beta": 1.0, "lam": 1.0}], noise)
    X, reward = instance().X, instance().reward
    place = {x.tobytes(): a for a, x in enumerate(X)}

    def pay(k: int, x: np.ndarray) -> float:
        return reward[place[x.tobytes()]] + noise[0, k - 1]

    log = code["run"]([X] * 1200, pay, lambda level: 1.0, 1.0)
    assert [entry[0] for entry in log] == arms[0].tolist()


# --- cells --------------------------------------------------------------------------------------


def small(policy: dict[str, Any], block: synthetic.Block, rounds: int = 1200) -> store.Config:
    return synthetic.cell("gap", policy, block, rounds=rounds)


def test_a_cell_does_not_depend_on_its_company() -> None:
    policies = [p for row in ("ds 0.05", "ds 0", "sup") for p in synthetic.grid(row, lams=(1.0,))]
    configs = [small(p, ((i, i + 1), (0, 8)), 600) for i in range(2) for p in policies]
    together = {}
    for batch in synthetic.batches(configs):
        for config, arrays in zip(batch, synthetic.run(batch, "numpy"), strict=True):
            together[store.key(config)] = store.checksum(config, arrays)
    assert len(together) == len(configs)
    for config in configs[::5]:
        alone = synthetic.run([config], "numpy")[0]
        assert store.checksum(config, alone) == together[store.key(config)]


@pytest.mark.parametrize("scale", base.SCALES)
def test_batches_hold_every_cell_once(scale: str) -> None:
    configs = synthetic.cells(scale)
    batches = list(synthetic.batches(configs))
    batched = [store.key(c) for batch in batches for c in batch]
    assert sorted(batched) == sorted({store.key(c) for c in configs})
    for batch in batches:  # a batch is a full product, so nothing is wasted
        blocks = {(tuple(c["instances"]), tuple(c["trials"])) for c in batch}
        policies = {repr(sorted(c["policy"].items())) for c in batch}
        assert len(blocks) * len(policies) == len(batch)


def test_regret_from_plays_equals_regret_from_arms() -> None:
    config = small(synthetic.ds_oful(0.05, 3.0, 1.0), ((0, 2), (0, 4)))
    arrays = synthetic.run([config], "numpy")[0]
    assert (arrays["plays"].sum(axis=(2, 3)) == 1200).all()
    run = bl.simulate(
        [instance(0), instance(1)],
        bl.DSOFUL(0.05, 3.0, 1.0),
        1200,
        4,
        record=("arms",),
        progress=False,
    )
    assert run.arms is not None
    gaps = np.stack([instance(i).gaps for i in range(2)])
    expected = gaps[np.arange(2)[:, None, None], run.arms[:, 0]].cumsum(axis=-1)[..., 199::200]
    assert np.allclose(synthetic.regret(arrays, config), expected, rtol=1e-9)


def test_what_is_kept_of_a_cell() -> None:
    config = small(synthetic.ds_oful(0.18, 1.0, 1.0), ((0, 1), (0, 8)))
    cell = store.Cell(config, synthetic.run([config], "numpy")[0])
    kept = synthetic.thin(cell)
    curve = synthetic.regret(cell.arrays, config)
    assert np.allclose(kept["regret"] * 1e-4, curve[..., -1], atol=1e-4)
    assert np.allclose(kept["curve"].sum(axis=-1), kept["regret"])
    wrong = kept["rank"] > 0
    assert (kept["locked"].astype(bool) == wrong).all()  # at Γ = 0.18 every run commits early
    assert 0 < wrong.sum() <= 8
    assert np.allclose(
        kept["last"][wrong] * 1e-4, 1000 * _gap_of_rank(kept["rank"][wrong]), rtol=1e-3
    )


def _gap_of_rank(rank: np.ndarray) -> np.ndarray:
    return np.sort(instance().gaps)[rank]


GOLDEN = {
    "ds 0": "4926d9d2a2fa3383",
    "ds 0.05": "e424a79226bf2559",
    "lsw": "17787a4dca096083",
    "rlb": "5713a674ca4886e1",
    "sup": "e87998821c83f5ec",
    "sup-theorem": "758dde7a18afbbd0",
}


@pytest.mark.parametrize("row", GOLDEN)
def test_golden_digests(row: str) -> None:
    """If this fails, decisions changed: raise the number in `ENGINE_NUMBERS`, renew the digests."""
    policy = synthetic.grid(row, betas=(3.0,), lams=(1.0,))[0]
    config = small(policy, ((0, 1), (0, 8)), rounds=400 if row == "lsw" else 1200)
    digest = store.checksum(config, synthetic.run([config], "numpy")[0])
    assert digest[:16] == GOLDEN[row], f"{row}: {digest[:16]}"


# --- the table ----------------------------------------------------------------------------------


def fake_runs(regret: np.ndarray) -> table_1.Runs:
    zero = np.zeros(regret.shape, dtype=int)
    return table_1.Runs(regret, regret / 10, zero.astype(bool), zero, zero, zero)


def test_selection_by_hand() -> None:
    a, b = np.full((2, 8), 10.0), np.full((2, 8), 20.0)
    a[1], b[1] = 30.0, 5.0
    reading = {"ds 0": {(1.0, 1.0): fake_runs(a), (3.0, 1.0): fake_runs(b)}}
    reading["sup"] = {(1.0, 1.0): fake_runs(b), (3.0, 1.0): fake_runs(a)}
    best = table_1.choose(reading)
    assert best["ds 0"].mean.tolist() == [10.0, 5.0]
    assert best["ds 0"].points == [(1.0, 1.0), (3.0, 1.0)]
    assert table_1.choose(reading, "shared")["sup"].mean.tolist() == [20.0, 30.0]
    assert table_1.choose(reading, "other seeds")["ds 0"].mean.tolist() == [20.0, 30.0]


def test_regrouping_turns_trials_into_instances() -> None:
    runs = fake_runs(np.arange(64.0).reshape(8, 8)).regroup()
    assert runs.regret[0].tolist() == [0, 8, 16, 24, 32, 40, 48, 56]
    assert np.array_equal(np.sort(runs.regret, axis=None), np.arange(64))


def test_the_table_renders_from_whole_and_from_thinned_cells() -> None:
    cells = []
    for row in ("ds 0", "ds 0.05"):
        for policy in synthetic.grid(row, betas=(3.0,), lams=(1.0,)):
            config = synthetic.cell("gap", policy, ((0, 1), (0, 8)), rounds=2000)
            cells.append(store.Cell(config, synthetic.run([config], "numpy")[0], {}))
    thin = [store.Packed(c.config, synthetic.thin(c), c.checksum, {}) for c in cells]
    whole = table_1.render(cells, "smoke")
    assert whole == table_1.render(thin, "smoke")  # type: ignore[arg-type]
    assert whole[".csv"].decode().count("\n") == 5 and "DS-OFUL" in whole[".md"].decode()


# --- the stored results ---------------------------------------------------------------------------


def test_stored_files_are_small() -> None:
    files = [p for p in base.results_folder().rglob("*") if p.is_file()]
    assert files and max(p.stat().st_size for p in files) < 2**20
    assert sum(p.stat().st_size for p in files) < 10 * 10**6


def test_every_row_has_the_whole_grid_and_as_many_runs() -> None:
    for name, rows in table_1.readings(table_1.load()).items():
        assert {row: len(points) for row, points in rows.items()} == {
            row: len(synthetic.grid(row)) for row in synthetic.ROWS
        }, name
        sizes = {runs.regret.size for points in rows.values() for runs in points.values()}
        assert len(sizes) == 1, (name, sizes)
