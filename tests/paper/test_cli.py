"""The command line: what it says, returns and writes, and what it does not do twice."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fake_experiment as fake
import pytest
from test_store import start

from banditlib.paper import cli, experiments, run, store
from banditlib.paper import reproduce as cli_reproduce
from banditlib.paper.experiments import base

SCALES = {"smoke": 1.0, "paper": 2.0, "full": 5.0}


@pytest.fixture(autouse=True)
def only_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    experiments.registry()  # load the real ones first, so that nothing registers later
    monkeypatch.setattr(base, "_REGISTRY", {"fake": fake.FAKE})


def reproduce(out: Path, *words: str) -> int:
    return cli.main(
        ["reproduce", "fake", "--scale", "smoke", "--workers", "1", "--out", str(out), *words]
    )


def test_first_run_computes_second_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    assert reproduce(tmp_path) == cli.OK
    assert "6 of 6 cells" in capsys.readouterr().out
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.*") if p != log}
    assert reproduce(tmp_path) == cli.OK
    assert "nothing to do" in capsys.readouterr().out
    assert before == {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.*") if p != log}
    assert len(log.read_text().split()) == 6


def test_editing_a_plot_draws_again_but_simulates_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reproduce(tmp_path) == cli.OK
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    monkeypatch.setattr(cli_reproduce, "drawing_source", lambda item: b"edited")
    assert reproduce(tmp_path) == cli.OK
    assert "done" in capsys.readouterr().out.splitlines()[-1] and not log.exists()


def test_a_deleted_or_edited_output_is_written_again(tmp_path: Path) -> None:
    assert reproduce(tmp_path) == cli.OK
    table = tmp_path / "fake-smoke.csv"
    content = table.read_bytes()
    table.write_bytes(b"edited by hand")
    assert reproduce(tmp_path) == cli.OK and table.read_bytes() == content
    table.unlink()
    assert reproduce(tmp_path) == cli.OK and table.read_bytes() == content


def test_a_changed_input_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reproduce(tmp_path) == cli.OK
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    other = [{**config, "seed": 8} for config in fake.cells("smoke")]
    monkeypatch.setitem(
        base._REGISTRY,
        "fake",
        base.Experiment("fake", "", fake.FAMILY, lambda s: other, fake.render, seconds=SCALES),
    )
    assert reproduce(tmp_path) == cli.OK
    assert len(log.read_text().split()) == 6


def test_another_engine_version_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reproduce(tmp_path) == cli.OK
    monkeypatch.setattr(fake, "ENGINE", fake.ENGINE + 1)
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    assert reproduce(tmp_path) == cli.OK
    assert len(log.read_text().split()) == 6


def test_a_worker_of_another_version_refuses() -> None:
    config = {**fake.cells("smoke")[0], "engine": fake.ENGINE + 1}
    with pytest.raises(run.OtherVersion, match="install the same banditlib"):
        run.compute(fake.run, [config], "numpy", run.asked())


def test_the_card_says_how_it_was_made(tmp_path: Path) -> None:
    assert reproduce(tmp_path) == cli.OK
    card = json.loads((tmp_path / "fake-smoke.json").read_text())
    assert card["command"] == "banditlib reproduce fake --scale smoke" and card["cells"] == 6
    assert {"commit", "cpu", "numpy", "finished"} <= set(card["provenance"])


def test_damage_is_named_and_repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce(tmp_path) == cli.OK
    before = fake.digests(tmp_path)
    victim = next(tmp_path.glob("cells/fake/*.npz"))
    victim.write_bytes(b"rubbish")
    assert reproduce(tmp_path) == cli.OK
    assert str(victim) in capsys.readouterr().err
    assert fake.digests(tmp_path) == before and victim.with_name(victim.name + ".damaged").exists()


@pytest.mark.slow
def test_the_same_results_with_any_number_of_workers(tmp_path: Path) -> None:
    command = ["reproduce", "fake", "--scale", "paper", "--workers"]
    assert cli.main([*command, "1", "--out", str(tmp_path / "1")]) == cli.OK
    digests = [fake.digests(tmp_path / "1")]
    for workers in ("2", "3"):
        process = start([*command, workers], tmp_path / workers)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        digests.append(fake.digests(tmp_path / workers))
    assert digests[0] == digests[1] == digests[2] and len(digests[0]) == 24


# --- errors -------------------------------------------------------------------------------------


def test_unknown_name_with_nearest_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", "fkae"]) == cli.USAGE
    assert "did you mean fake?" in capsys.readouterr().err
    assert cli.main(["verify", "zzzzzz"]) == cli.USAGE
    assert "banditlib list" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["reproduce", "--scale", "huge"], ["reproduce", "--workers", "0"], ["nonsense"]]
)
def test_wrong_options_exit_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    assert stopped.value.code == cli.USAGE


def test_no_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    assert reproduce(blocker / "out") == cli.NO_SPACE
    said = capsys.readouterr().err
    assert "--out" in said and said.count("\n") == 1


def test_a_failing_cell_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(configs: object, backend: str) -> list[store.Arrays]:
        raise ValueError("beta: expected a number")

    family = base.Family("fake", broken)
    item = base.Experiment("fake", "", family, fake.cells, fake.render, seconds=SCALES)
    monkeypatch.setitem(base._REGISTRY, "fake", item)
    assert reproduce(tmp_path) == cli.BROKEN
    said = capsys.readouterr().err
    assert "beta: expected a number" in said and "'number': 0" in said


def test_missing_data_is_code_4_by_name_and_left_out_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    family = base.Family(
        "other", fake.run, unavailable=lambda config: "Run `banditlib data asirra` first."
    )
    cells = [base.cell_config("other", seed=7, number=0, size=10)]
    item = base.Experiment("other", "", family, lambda s: cells, fake.render, seconds=SCALES)
    monkeypatch.setitem(base._REGISTRY, "other", item)
    assert cli.main(["reproduce", "other", "--out", str(tmp_path)]) == cli.MISSING
    assert "banditlib data asirra" in capsys.readouterr().err
    words = ["reproduce", "--scale", "smoke", "--workers", "1", "--out", str(tmp_path)]
    assert cli.main(words) == cli.OK
    assert "left out" in capsys.readouterr().out


def test_what_is_complete_needs_nothing_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells that are there are drawn also where the data behind them are not."""
    assert reproduce(tmp_path) == cli.OK
    item = base._REGISTRY["fake"]
    family = dataclasses.replace(item.family, unavailable=lambda config: "No data.")
    monkeypatch.setitem(base._REGISTRY, "fake", dataclasses.replace(item, family=family))
    assert reproduce(tmp_path) == cli.OK
    assert "nothing to do" in capsys.readouterr().out


def test_unreachable_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="needs banditlib[cluster]")
    assert reproduce(tmp_path, "--scheduler", "tcp://127.0.0.1:1") == cli.MISSING
    assert "No Dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err


def test_no_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from banditlib import backend

    try:
        backend.namespace("cupy")
    except backend.BackendError:
        pass
    else:
        pytest.skip("there is a GPU here")
    assert reproduce(tmp_path, "--backend", "cupy") == cli.MISSING
    assert "cupy" in capsys.readouterr().err


def test_interrupt_leaves_a_resumable_state(tmp_path: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        out = tmp_path / str(int(number))
        for workers in ("1", "2"):
            before = len(list(out.glob("cells/fake/*.npz")))
            words = ["reproduce", "fake", "--scale", "full", "--workers", workers]
            process = start(words, out, FAKE_SECONDS="0.05")
            deadline = time.monotonic() + 20
            while len(list(out.glob("cells/fake/*.npz"))) <= before and time.monotonic() < deadline:
                time.sleep(0.02)
            os.kill(process.pid, number)
            _, said = process.communicate(timeout=30)
            assert process.returncode == cli.INTERRUPTED and "Interrupted" in said
            assert "Traceback" not in said
        again = ["reproduce", "fake", "--scale", "full", "--workers", "1", "--out", str(out)]
        assert cli.main(again) == cli.OK and len(fake.digests(out)) == 60
        assert not list(out.glob("**/*.tmp"))  # what a killed worker left was swept


# --- list, help, verify -------------------------------------------------------------------------


def test_list_names_everything_in_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == cli.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:1] == ["name"] and lines[1].startswith("fake")


def test_help_documents_exit_codes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "banditlib.paper.cli", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    for code in (0, 1, 2, 3, 4, 5, 130):
        assert f"\n  {code} " in done.stdout
    for word in ("list", "reproduce", "verify", "data", "bench"):
        assert word in done.stdout


def test_data_and_bench_without_arguments_say_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data"]) == cli.USAGE
    assert "banditlib data asirra" in capsys.readouterr().err
