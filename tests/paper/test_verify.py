"""Publishing and verifying: nothing lost, nothing passed that was not looked at."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import fake_experiment as fake
import numpy as np
import pytest
from attacks import record, tries
from test_store import start

from banditlib.paper import cli, experiments, published, store
from banditlib.paper.experiments import base
from banditlib.paper.published import faults
from banditlib.paper.store import Cell, Packed, read_pack, write_pack


@pytest.fixture(autouse=True)
def only_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    experiments.registry()  # load the real ones first, so that nothing registers later
    monkeypatch.setattr(base, "_REGISTRY", {"fake": fake.FAKE})


def publish(tmp_path: Path, scale: str = "smoke") -> Path:
    words = ["reproduce", "fake", "--scale", scale, "--workers", "1"]
    words += ["--out", str(tmp_path / "out"), "--publish", str(tmp_path / "stored")]
    assert cli.main(words) == cli.OK
    return tmp_path / "stored"


def verify(stored: Path, *words: str) -> int:
    return cli.main(["verify", "--results", str(stored), "--seed", "1", "--workers", "1", *words])


def changed(monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    """The fake experiment with another family."""
    family = dataclasses.replace(fake.FAMILY, **fields)
    monkeypatch.setitem(
        base._REGISTRY, "fake", dataclasses.replace(base._REGISTRY["fake"], family=family)
    )


# --- what verify accepts and refuses ------------------------------------------------------------


def test_what_was_published_is_accepted_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = publish(tmp_path)
    assert verify(stored, "--sample", "3") == cli.OK
    said = capsys.readouterr().out
    assert said.count(": identical") == 3 and "Re-ran 3 of 6 cells" in said
    assert "Not re-run: 3 cells. They were not drawn." in said and "--seed 1" in said


@pytest.mark.parametrize(
    "words",
    [["--sample", "-1"], ["--sample", "0"], ["--random", "0"], ["--limit", "nan"],
     ["--limit", "-3"], ["--slice", "3/2"], ["--slice", "x"], ["--workers", "0"]],
)  # fmt: skip
def test_bad_options_are_refused(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        verify(tmp_path, *words)
    assert stopped.value.code == cli.USAGE


@pytest.mark.parametrize("word", [["--fresh"], ["--slice", "1/2"]])
def test_what_goes_with_all_is_refused_without_it(tmp_path: Path, word: list[str]) -> None:
    assert verify(publish(tmp_path), *word) == cli.USAGE


def test_nothing_re_run_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = publish(tmp_path)
    assert verify(stored, "--limit", "1e-9") != cli.OK
    said = capsys.readouterr().out
    assert "take longer than --limit" in said and "nothing is verified" in said


def test_an_empty_folder_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "stored").mkdir()
    assert verify(tmp_path / "stored") == cli.FAILED
    assert "has no MANIFEST" in capsys.readouterr().out


def test_missing_data_are_said_and_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = publish(tmp_path)
    changed(monkeypatch, unavailable=lambda config: "No data.")
    assert verify(stored) == cli.MISSING
    assert "No data." in capsys.readouterr().out


def two_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    changed(monkeypatch, part=lambda config: f"pack-{config['number'] % 2}")
    stored = publish(tmp_path)
    (stored / "bench.json").write_text("{}")
    published.enroll(stored / "bench.json")
    assert faults(stored) == []
    return stored


def test_missing_extra_swapped_altered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = two_packs(tmp_path, monkeypatch)
    a, b = (stored / "fake" / f"pack-{i}.npz" for i in (0, 1))
    keep = tmp_path / "keep"
    shutil.copytree(stored, keep)

    def restore() -> None:
        shutil.rmtree(stored)
        shutil.copytree(keep, stored)

    def said() -> str:
        capsys.readouterr()
        assert verify(stored) == cli.FAILED
        return capsys.readouterr().out

    b.unlink()
    assert "pack-1.npz is missing" in said()
    restore()
    shutil.copy(a, stored / "fake" / "more.npz")
    assert "more.npz is not in the MANIFEST" in said()
    restore()
    a.replace(tmp_path / "x"), b.replace(a), (tmp_path / "x").replace(b)
    assert "pack-0.npz is fake/pack-1.npz under another name" in said()
    restore()
    (stored / "bench.json").write_text("garbage")
    assert "bench.json is not the file" in said()
    restore()
    a.write_bytes(a.read_bytes()[:-40])
    assert "pack-0.npz cannot be read" in said()
    restore()
    (stored / "MANIFEST").write_text("nonsense here to read\n")
    assert "no line of a manifest" in said()


def forge(path: Path) -> None:
    """Halve every number of a pack and make its checksums right again."""
    cells = read_pack(path)
    halved = [
        Packed(c.config, {"plays": c.arrays["plays"] // 2}, c.whole, c.provenance) for c in cells
    ]
    write_pack(path, path.stem, halved)


def test_a_forged_pack_is_caught_every_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = publish(tmp_path)
    forge(stored / "fake" / "cells.npz")
    assert verify(stored) == cli.FAILED
    assert "6 cells are altered" in capsys.readouterr().out
    with pytest.raises(published.Unlisted, match="altered"):
        published.check_manifest(stored)


def test_dropped_and_added_cells_are_named(tmp_path: Path) -> None:
    stored = publish(tmp_path)
    path = stored / "fake" / "cells.npz"
    cells = read_pack(path)
    config = fake.cells("paper")[-1]
    extra = Cell(config, fake.run([config], "numpy")[0], cells[0].provenance)
    new = Packed(config, fake.FAMILY.thin(extra), extra.checksum, extra.provenance)
    write_pack(path, "cells", [*cells[1:], new])
    (told,) = faults(stored)
    assert f"1 cells are missing ({cells[0].key})" in told and f"extra ({new.key})" in told


def test_results_that_no_longer_come_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = publish(tmp_path)

    def other(configs: list[store.Config], backend: str) -> list[store.Arrays]:
        return [{"plays": a["plays"] + (a["plays"] == 999)} for a in fake.run(configs, backend)]

    changed(monkeypatch, run=other)
    assert verify(stored, "--sample", "6") == cli.FAILED
    assert "DIFFERENT" in capsys.readouterr().out


# --- strata -------------------------------------------------------------------------------------


def test_the_sample_has_every_policy_of_every_pack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(
        monkeypatch,
        part=lambda config: f"pack-{config['number'] % 2}",
        stratum=lambda config: f"policy {config['number'] % 4}",
        label=lambda config: f"number {config['number']}",
    )
    stored = publish(tmp_path, "paper")
    for seed in range(5):
        capsys.readouterr()
        assert verify(stored, "--seed", str(seed)) == cli.OK
        lines = [line for line in capsys.readouterr().out.splitlines() if ": identical" in line]
        numbers = [int(line.split("number ")[1].split(":")[0]) for line in lines]
        assert sorted(n % 4 for n in numbers) == [0, 1, 2, 3]


def test_real_strata_name_every_policy_and_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    from banditlib.paper.experiments.synthetic import cells as synthetic

    family = synthetic.FAMILY
    strata = {(family.part(c), family.stratum(c)) for c in synthetic.full_cells()}
    policies = {name for _, name in strata}
    assert len(policies) == 5 and len({part for part, _ in strata}) == 7
    assert len(strata) == 6 * 5 + 3  # the long runs have no RLB and no theorem's β(l)


# --- all ----------------------------------------------------------------------------------------


def stops_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake family is interrupted once it has computed so many cells."""
    done: list[int] = []

    def stops(configs: list[store.Config], backend: str) -> list[store.Arrays]:
        if len(done) >= count:
            raise KeyboardInterrupt
        done.extend(config["number"] for config in configs)
        return fake.run(configs, backend)

    stops.__module__ = fake.__name__  # what is known is known of one source
    changed(monkeypatch, run=stops)


def test_all_is_resumed_and_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = publish(tmp_path, "paper")
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    stops_after(8, monkeypatch)
    assert verify(stored, "--all") == cli.INTERRUPTED
    record = record_of(stored)
    assert record["cells"] == 24 and record["identical"] == 8 and record["different"] == 0
    changed(monkeypatch, run=fake.run)
    assert verify(stored, "--all") == cli.OK
    said = capsys.readouterr().out
    assert "8 cells came out identically before" in said
    assert "Re-ran 16 of 24 cells now: 16 identical, 0 different" in said
    assert "8 cells came out identically in earlier runs." in said
    record = record_of(stored)
    assert record["identical"] == 24 and record["packs"]["fake/cells.npz"]["identical"] == 24
    assert record["packs"]["fake/cells.npz"]["source"] and record["commit"]
    assert sorted(map(int, log.read_text().split())) == list(range(24))  # each once
    assert faults(stored) == []  # the record is no result


def test_where_all_is_known_it_says_that_nothing_was_re_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = publish(tmp_path)
    assert verify(stored, "--all") == cli.OK
    before = (stored / "VERIFIED.json").read_bytes()
    capsys.readouterr()
    assert verify(stored, "--all") == cli.OK
    said = capsys.readouterr().out
    assert "Nothing was re-run: all 6 cells came out identically before" in said
    assert "--fresh re-runs them" in said
    assert "Re-ran" not in said and "matches" not in said
    assert (stored / "VERIFIED.json").read_bytes() == before


def test_known_cells_do_not_speak_for_those_that_cannot_be_re_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = publish(tmp_path, "paper")
    stops_after(8, monkeypatch)
    assert verify(stored, "--all") == cli.INTERRUPTED
    before = record_of(stored)["packs"]
    changed(monkeypatch, run=fake.run, unavailable=lambda config: "No data.")
    capsys.readouterr()
    assert verify(stored, "--all") == cli.MISSING
    said = capsys.readouterr().out
    assert "Re-ran 0 of 24 cells now" in said and "8 cells came out identically in earlier" in said
    assert "Not re-run: 16 cells. No data." in said and "nothing is verified" in said
    assert record_of(stored)["packs"] == before


def test_fresh_begins_the_account_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, log = publish(tmp_path, "paper"), tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    assert again(stored, log) == 24 and again(stored, log, "--fresh") == 24
    assert "Re-ran 24 of 24 cells now: 24 identical" in capsys.readouterr().out
    stops_after(10, monkeypatch)
    assert verify(stored, "--all", "--fresh") == cli.INTERRUPTED
    assert "without --fresh goes on" in capsys.readouterr().err
    assert record_of(stored)["identical"] == 10
    changed(monkeypatch, run=fake.run)
    assert again(stored, log) == 14


def test_slices_cover_all_cells_whatever_the_record_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And they leave it as it is: none, whole or half done."""
    stored, log = publish(tmp_path, "paper"), tmp_path / "log"
    path = stored / "VERIFIED.json"
    monkeypatch.setenv("FAKE_LOG", str(log))
    assert again(stored, log, "--slice", "1/3") == 8 and not path.exists()
    assert again(stored, log) == 24
    before, found = path.read_bytes(), []
    for k in (1, 2, 3):
        capsys.readouterr()
        assert again(stored, log, "--slice", f"{k}/3") == 8
        found += log.read_text().split()
        said = capsys.readouterr().out
        assert "Re-ran 8 of 24 cells now: 8 identical" in said and "earlier" not in said
        assert f"Not re-run: 16 cells. They are in other slices than {k}/3." in said
    assert sorted(map(int, found)) == list(range(24)) and path.read_bytes() == before


def test_all_goes_on_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = publish(tmp_path, "paper")
    stops_after(10, monkeypatch)
    assert verify(stored, "--all") == cli.INTERRUPTED
    assert record_of(stored)["identical"] == 10
    changed(monkeypatch, run=fake.run)
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    assert verify(stored, "--all") == cli.OK
    assert len(log.read_text().split()) == 14


def record_of(stored: Path) -> dict:
    return json.loads((stored / "VERIFIED.json").read_text())


def again(stored: Path, log: Path, *words: str) -> int:
    """How many cells `verify --all` re-runs."""
    log.unlink(missing_ok=True)
    assert verify(stored, "--all", *words) == cli.OK
    return len(log.read_text().split()) if log.exists() else 0


def test_a_record_holds_for_its_source_and_its_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, log = publish(tmp_path), tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    assert again(stored, log) == 6 and again(stored, log) == 0
    publish(tmp_path, "paper")  # 18 cells more in the same pack: all are looked at again
    assert again(stored, log) == 24
    monkeypatch.setattr("banditlib.paper.verify.engine_source", lambda family: "another")
    stops_after(12, monkeypatch)
    assert verify(stored, "--all") == cli.INTERRUPTED
    assert len(record_of(stored)["packs"]["fake/cells.npz"]["which"]) == 12  # named one by one
    changed(monkeypatch, run=fake.run)
    assert again(stored, log) == 12
    (stored / "VERIFIED.json").write_text('{"packs": 3}')
    capsys.readouterr()
    assert again(stored, log) == 24
    assert "VERIFIED.json cannot be read: all cells are re-run" in capsys.readouterr().out


def test_a_record_holds_for_its_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack that names no versions was verified under those of the whole record."""
    stored, log = publish(tmp_path), tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    assert again(stored, log) == 6
    record = record_of(stored)
    pack, now = record["packs"]["fake/cells.npz"], record["versions"]
    assert "versions" not in pack and now["numpy"] == np.__version__ and now["blas"]
    other = now | {"numpy": "1.0"}
    for whole, own, due in ((other, {}, 6), (other, {"versions": now}, 0), (now, {}, 0),
                            (now, {"versions": other}, 6)):  # fmt: skip
        told = record | {"versions": whole, "packs": {"fake/cells.npz": pack | own}}
        (stored / "VERIFIED.json").write_text(json.dumps(told))
        assert again(stored, log) == due


def test_a_record_keeps_what_it_says_of_other_packs(tmp_path: Path) -> None:
    stored = publish(tmp_path)
    other = {"cells": 4, "identical": 3, "different": [], "source": "x", "seconds": 2.0}
    old = {"versions": {"numpy": "1.0"}, "packs": {"a/b.npz": other}}
    (stored / "VERIFIED.json").write_text(json.dumps(old))
    assert verify(stored, "--all", "--fresh") == cli.OK
    record = record_of(stored)
    assert record["packs"]["a/b.npz"] == {**other, "versions": {"numpy": "1.0"}}
    assert record["cells"] == 10 and record["identical"] == 9


def test_random_draws_from_all_cells_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(monkeypatch, part=lambda config: f"pack-{config['number'] == 0}")
    stored = publish(tmp_path, "paper")
    assert verify(stored, "--random", "20") == cli.OK
    said = capsys.readouterr().out
    assert "Re-ran 20 of 24 cells" in said and "Not re-run: 4 cells" in said
    assert verify(stored, "--random", "100") == cli.OK
    assert "Re-ran 24 of 24 cells now:" in capsys.readouterr().out


# --- the one door -------------------------------------------------------------------------------


def test_cells_of_another_engine_are_no_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = publish(tmp_path)
    assert len(experiments.stored("fake", "smoke", stored)) == 6
    monkeypatch.setattr(fake, "ENGINE", fake.ENGINE + 1)
    with pytest.raises(base.Outdated, match=r"cells\.npz holds 6 cells of 6.*reproduce --scale"):
        experiments.stored("fake", "smoke", stored)
    assert verify(stored) == cli.FAILED
    assert "made by an engine version" in capsys.readouterr().out


# --- publishing ---------------------------------------------------------------------------------


def test_publishing_again_changes_nothing(tmp_path: Path) -> None:
    stored = publish(tmp_path)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in stored.rglob("*.*")}
    publish(tmp_path)
    shutil.rmtree(tmp_path / "out")
    publish(tmp_path)
    assert before == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in stored.rglob("*.*")}


def test_what_is_published_is_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path)
    table = (tmp_path / "out" / "fake-smoke.csv").read_bytes()
    shutil.rmtree(tmp_path / "out")
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    publish(tmp_path)
    assert not log.exists() and (tmp_path / "out" / "fake-smoke.csv").read_bytes() == table
    publish(tmp_path, "paper")
    assert len(log.read_text().split()) == 24 - 6
    assert len(read_pack(tmp_path / "stored" / "fake" / "cells.npz")) == 24


def test_the_first_computation_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell that is computed again by another engine says when it first was."""
    stored = publish(tmp_path)
    path = stored / "fake" / "cells.npz"
    then = [
        Packed(c.config, c.arrays, c.whole, {**c.provenance, "finished": "2020", "commit": "abc"})
        for c in read_pack(path)
    ]
    write_pack(path, "cells", then)
    published.main([str(stored)])
    monkeypatch.setattr(fake, "ENGINE", fake.ENGINE + 1)
    publish(tmp_path)
    cells = read_pack(path)
    first = {"finished": "2020", "commit": "abc", "engine": fake.ENGINE - 1}
    assert len(cells) == 6 and all(c.config["engine"] == fake.ENGINE for c in cells)
    assert all(c.provenance["first"] == first for c in cells)
    assert all(c.provenance["finished"] > "2026" for c in cells)
    monkeypatch.setattr(fake, "ENGINE", fake.ENGINE + 1)
    publish(tmp_path)
    assert all(c.provenance["first"] == first for c in read_pack(path))


def test_a_new_cell_leaves_the_origin_of_the_others_alone(tmp_path: Path) -> None:
    stored = publish(tmp_path)
    path = stored / "fake" / "cells.npz"
    write_pack(
        path,
        "cells",
        [
            Packed(c.config, c.arrays, c.whole, {**c.provenance, "finished": "2020"})
            for c in read_pack(path)
        ],
    )
    published.main([str(stored)])
    publish(tmp_path, "paper")
    assert sum(c.provenance["finished"] == "2020" for c in read_pack(path)) == 6


def double_publish(tmp_path: Path) -> int:
    """Two processes publish different cells at once; how many are there afterwards."""
    code = (
        "import sys; import fake_experiment as fake\n"
        "from pathlib import Path; from banditlib.paper.store import Cell\n"
        "from banditlib.paper.published import publish\n"
        "low, high = int(sys.argv[2]), int(sys.argv[3])\n"
        "some = fake.cells('full')[low:high]\n"
        "cells = [Cell(c, a, {}) for c, a in zip(some, fake.run(some, 'numpy'))]\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for cell in cells: publish(fake.FAMILY, [cell], Path(sys.argv[1]))\n"
    )
    helpers = {**os.environ, "PYTHONPATH": str(Path(fake.__file__).parent)}
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), str(low), str(low + 5)],
            env=helpers, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for low in (0, 5)
    ]  # fmt: skip
    for process in pair:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in pair:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert all(process.wait(60) == 0 for process in pair)
    assert faults(tmp_path) == []
    return len(read_pack(tmp_path / "fake" / "cells.npz"))


@pytest.mark.attack
def test_two_publish_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    count = tries(1, 25)
    for number in range(count):
        assert double_publish(tmp_path / str(number)) == 10
    record("double publishes", tried=count, with_losses=0)


# --- the results of the book --------------------------------------------------------------------


def test_the_committed_results_are_what_their_manifest_says() -> None:
    assert faults(base.results_folder()) == []


def test_a_manifest_is_read_as_it_was_written() -> None:
    entries = {
        "b.json": published.Entry("1" * 64),
        "a/x.npz": published.Entry("2" * 64, {"k2": "d2", "k1": "d1"}),
    }
    text = published.Manifest(entries).text()
    assert published.Manifest.parse(text).entries == entries
    lines = text.splitlines()[1:]
    assert lines == [
        f"pack a/x.npz 2 cells {'2' * 64}",
        "k1 d1",
        "k2 d2",
        f"file b.json {'1' * 64}",
    ]


def test_the_digest_of_a_cell_sees_all_that_is_kept() -> None:
    one = Packed({"a": 1}, {"x": np.arange(3)}, "w", {})
    assert one.digest != dataclasses.replace(one, whole="v").digest
    assert one.digest != dataclasses.replace(one, arrays={"x": np.arange(3) + 1}).digest
    assert one.digest == dataclasses.replace(one, provenance={"wall": 2}).digest


@pytest.mark.slow
def test_verify_with_workers(tmp_path: Path) -> None:
    stored = publish(tmp_path, "full")
    words = ["verify", "fake", "--results", str(stored), "--all", "--workers", "2"]
    process = start(words, tmp_path / "out")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and "60 identical, 0 different" in said
