"""Cats against dogs: loading and filtering features, and computing them from images."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import banditlib
from banditlib.paper import asirra, sweep, vision
from banditlib.paper.asirra import FeaturesError
from banditlib.paper.made import stored
from banditlib.paper.results import Cell, key

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "asirra"


@pytest.fixture
def features() -> asirra.Features:
    rng = np.random.default_rng(0)
    base, shift = rng.normal(size=8), rng.normal(size=8)
    noise = rng.normal(size=(110, 8))
    return asirra.from_arrays(2 * base + shift + noise[:60], 2 * base - shift + noise[60:])


# ---- loading ------------------------------------------------------------------------------------


def save(path: Path, **changes) -> Path:
    rng = np.random.default_rng(1)
    arrays = {
        "cats": rng.normal(size=(5, 4)).astype(np.float16),
        "dogs": rng.normal(size=(6, 4)).astype(np.float16),
        "cat_ids": np.arange(5),
        "dog_ids": np.arange(6),
        "meta": np.array(json.dumps({"preprocessing": "none"})),
    } | changes
    np.savez(path, **{name: a for name, a in arrays.items() if a is not None})
    return path


def test_vectors_come_back_with_norm_one(tmp_path):
    loaded = banditlib.asirra.load(path=save(tmp_path / "f.npz"))
    assert np.allclose(np.linalg.norm(loaded.good, axis=1), 1, atol=1e-15)
    assert loaded.meta == {"preprocessing": "none"}
    assert loaded.good.dtype == np.float64 and loaded.dim == 4


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"cats": None}, "cats"),
        ({"cats": np.zeros((0, 4)), "cat_ids": np.arange(0)}, "non-empty"),
        ({"cats": np.ones((5, 3))}, "dimension 3"),
        ({"cat_ids": np.arange(4)}, "ids"),
        ({"dogs": np.full((6, 4), np.nan)}, "NaN"),
        ({"dogs": np.zeros((6, 4))}, "zero vector"),
        ({"cats": np.ones(5)}, "shape"),
    ],
)
def test_bad_features_are_named(tmp_path, changes, word):
    with pytest.raises(FeaturesError, match=word):
        asirra.read(save(tmp_path / "f.npz", **changes))


def test_a_truncated_file_is_named(tmp_path):
    path = save(tmp_path / "f.npz")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(FeaturesError, match="not a readable features file"):
        asirra.read(path)


def test_a_pickle_is_refused(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, cats=np.array([{}], dtype=object), dogs=1, cat_ids=1, dog_ids=1)
    with pytest.raises(FeaturesError, match="not a readable features file"):
        asirra.read(path)


def test_the_variable_comes_before_the_folders(tmp_path, monkeypatch):
    monkeypatch.setenv(asirra.VARIABLE, str(save(tmp_path / "mine.npz")))
    assert asirra.find() == tmp_path / "mine.npz"
    monkeypatch.setenv(asirra.VARIABLE, str(tmp_path))
    save(tmp_path / asirra.FILES["tiny"])
    assert asirra.find("tiny") == tmp_path / asirra.FILES["tiny"]
    assert asirra.find("tiny", path=tmp_path) == tmp_path / asirra.FILES["tiny"]
    assert asirra.find(path=tmp_path / "other.npz") == tmp_path / "other.npz"


def test_absence_explains_itself(tmp_path, monkeypatch):
    monkeypatch.delenv(asirra.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(asirra, "_ROOT", tmp_path / "a" / "b")
    with pytest.raises(FeaturesError, match="banditlib data asirra"):
        asirra.load()
    with pytest.raises(FeaturesError, match="preprocess is 'big'"):
        asirra.load("big")


# ---- filtering ----------------------------------------------------------------------------------


def test_least_squares_solves_the_normal_equations(features):
    x = np.concatenate([features.good, features.bad])
    r = np.concatenate([np.ones(60), np.zeros(50)])
    assert np.allclose(x.T @ (x @ asirra.fit(features) - r), 0, atol=1e-10)


def test_the_two_rules(features):
    theta = asirra.fit(features)
    good, bad = asirra.residuals(features, theta)
    two = asirra.kept(features, 0.1, "two-sided")
    one = asirra.kept(features, 0.1, "one-sided")
    assert (two[0] == (np.abs(good) <= 0.1)).all() and (two[1] == (np.abs(bad) <= 0.1)).all()
    assert (one[0] == (good >= -0.1)).all() and (one[1] == (bad <= 0.1)).all()
    assert (two[0] <= one[0]).all() and one[0].sum() > two[0].sum() > 0


def test_table_2_counts_and_true_misspecification(features):
    rows = asirra.table_2(features)
    assert rows[0]["two-sided"] == (60, 50)
    for row in rows[1:]:
        assert row["two-sided true zeta"] <= row["zeta"]
        assert row["one-sided"][0] >= row["two-sided"][0]


def test_the_pool_holds_what_the_filter_keeps(features):
    problem = asirra.pool(features, 0.3)
    good, bad = asirra.kept(features, 0.3)
    assert len(problem.good) == good.sum() and len(problem.bad) == bad.sum()


@pytest.mark.parametrize(
    ("zeta", "rule", "word"),
    [
        (1e-9, "two-sided", "pool is empty"),
        (0.1, "both", "rule"),
        (-1, "two-sided", "zeta"),
        (float("nan"), "two-sided", "zeta"),
    ],
)
def test_bad_filters(features, zeta, rule, word):
    with pytest.raises(FeaturesError, match=word):
        asirra.pool(features, zeta, rule)


def test_digits_ship_with_a_package():
    pytest.importorskip("sklearn", reason="scikit-learn (extra: book) is not installed")
    digits = asirra.digits()
    assert digits.dim == 64 and len(digits.good) + len(digits.bad) == 1797


def test_without_scikit_learn_only_the_small_size_is_missing(monkeypatch, tmp_path):
    from banditlib.paper import sweep, table_2

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    monkeypatch.setattr(asirra, "find", lambda *_: None)
    sweep.pool.cache_clear()
    for family, cells in (
        (sweep.FAMILY, lambda scale: sweep.panel_cells("figure-1b", scale)),
        (table_2.FAMILY, table_2._cells),
    ):
        assert "pip install scikit-learn" in family.unavailable(cells("smoke")[0])
        assert "banditlib data asirra" in family.unavailable(cells("full")[0])


def test_other_features_than_those_of_the_stored_results_are_refused(monkeypatch, features):
    monkeypatch.setattr(asirra, "load", lambda *_: features)
    found = features.digest()
    assert asirra.known("standard", found) is features
    with pytest.raises(FeaturesError, match=f"digest is {found[:16]}, expected {'0' * 16}"):
        asirra.known("standard", "0" * 16)
    assert not asirra.is_known("standard")


def test_own_features_make_cells_of_their_own(monkeypatch, features):
    from banditlib.paper import sweep

    monkeypatch.setattr(asirra, "find", lambda *_: Path("own.npz"))
    monkeypatch.setattr(asirra, "read", lambda _: features)
    stored = sweep.panel_cells("figure-1b", "full")[0]
    monkeypatch.setenv(asirra.OWN, "1")
    own = sweep.panel_cells("figure-1b", "full")[0]
    assert stored["digest"] == asirra.DIGESTS["standard"] != own["digest"]
    assert own == stored | {"digest": features.digest()[:16]}
    assert sweep.panel_cells("figure-1b", "smoke")[0]["digest"] == asirra.DIGESTS["digits"]


# ---- images -------------------------------------------------------------------------------------

PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def jpeg(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    image = PIL.fromarray(rng.integers(0, 255, (40, 50, 3), dtype=np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG")
    return buffer.getvalue()


def folder(path: Path, cats: int = 3, dogs: int = 2) -> Path:
    for label, n in (("Cat", cats), ("Dog", dogs)):
        (path / "PetImages" / label).mkdir(parents=True)
        for i in range(n):
            (path / "PetImages" / label / f"{i}.jpg").write_bytes(jpeg(i + (label == "Dog") * 100))
    return path


def archive(path: Path, names: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as stream:
        for name, data in names.items():
            stream.writestr(name, data)
    return path


class Grey:
    """A stand-in network: the mean colour, repeated; counts how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0
        self.net = vision.Network(self.features, "grey", "cpu")

    def features(self, images):
        self.calls += 1
        means = np.array([np.asarray(im).mean(axis=(0, 1)) for im in images])
        return np.tile(means, (1, 2)).astype(np.float32)


def test_both_layouts_give_the_same(tmp_path):
    a = vision.pictures(folder(tmp_path / "ms"))
    kaggle = {f"train/{p.label}.{p.id}.jpg": p.read() for p in a}
    b = vision.pictures(archive(tmp_path / "train.zip", kaggle | {"train/notes.txt": b""}))
    assert [(p.label, p.id, p.read()) for p in a] == [(p.label, p.id, p.read()) for p in b]
    assert [p.label for p in a] == ["cat"] * 3 + ["dog"] * 2


def test_features_are_written_whole_with_unreadable_files_listed(tmp_path):
    source = folder(tmp_path / "in")
    (source / "PetImages" / "Cat" / "1.jpg").write_bytes(b"not an image")
    (source / "PetImages" / "Dog" / "1.jpg").write_bytes(jpeg(3)[:200])
    out = vision.extract(source, tmp_path / "out", Grey().net, batch=2, progress=False)
    loaded = asirra.read(out)
    assert loaded.good_ids.tolist() == [0, 2] and loaded.bad_ids.tolist() == [0]
    assert loaded.meta["unreadable"] == ["cat 1", "dog 1"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == [asirra.FILES["standard"]]


def test_a_folder_of_rubbish_is_named(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "cat.1.jpg").write_bytes(b"rubbish")
    with pytest.raises(FeaturesError, match="none of the 1 files"):
        vision.extract(tmp_path / "in", tmp_path / "o", Grey().net, progress=False)


def test_an_interrupted_run_goes_on(tmp_path):
    source, first, second = folder(tmp_path / "in"), Grey(), Grey()

    def dies(images):
        if first.calls == 2:
            raise KeyboardInterrupt
        return first.features(images)

    with pytest.raises(KeyboardInterrupt):
        vision.extract(
            source, tmp_path / "o", vision.Network(dies, "grey", "cpu"), batch=1, progress=False
        )
    assert not (tmp_path / "o" / asirra.FILES["standard"]).exists()
    resumed = vision.extract(source, tmp_path / "o", second.net, batch=1, progress=False)
    fresh = vision.extract(source, tmp_path / "p", Grey().net, batch=1, progress=False)
    assert second.calls == 3
    assert asirra.read(resumed).digest() == asirra.read(fresh).digest()


def test_a_damaged_part_is_computed_again(tmp_path):
    source, grey = folder(tmp_path / "in"), Grey()
    real = vision._write

    def stop_at_the_end(path, **arrays):
        if path.name == asirra.FILES["standard"]:
            raise OSError(28, "No space left on device")
        real(path, **arrays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vision, "_write", stop_at_the_end)
        with pytest.raises(OSError, match="No space"):
            vision.extract(source, tmp_path / "o", grey.net, batch=2, progress=False)
    part = next((tmp_path / "o").rglob("000002.npz"))
    part.write_bytes(part.read_bytes()[:50])
    vision.extract(source, tmp_path / "o", grey.net, batch=2, progress=False)
    assert grey.calls == 4


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda p: p / "absent.zip", "neither a folder nor a zip"),
        (lambda p: p, "holds no image"),
        (lambda p: archive(p / "a.zip", {"Cat/1.jpg": b"", "x/cat.1.jpg": b""}), "cat 1 twice"),
    ],
)
def test_bad_sources(tmp_path, make, word):
    with pytest.raises(FeaturesError, match=word):
        vision.pictures(make(tmp_path))


def test_a_truncated_archive_is_named(tmp_path):
    path = archive(tmp_path / "a.zip", {"Cat/1.jpg": jpeg(0)})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FeaturesError, match="truncated"):
        vision.pictures(path)


def test_nothing_escapes_and_nothing_explodes(tmp_path, monkeypatch):
    monkeypatch.setattr(vision, "_LARGEST_FILE", 10_000)
    path = archive(tmp_path / "a.zip", {"../../Cat/1.jpg": jpeg(0), "Dog/2.jpg": b"\0" * 20_000})
    found = vision.pictures(path)
    assert vision.opened(found[0]) is not None, "the first is read in memory, wherever it points"
    assert vision.opened(found[1]) is None, "the second is refused"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.zip"]


def test_an_image_of_too_many_pixels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(vision, "_LARGEST_IMAGE", 100)
    assert vision.opened(vision.Picture("cat", 1, lambda: jpeg(0))) is None


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--images", "absent"], "absent"),
        (["--preprocess", "huge"], "invalid choice"),
    ],
)
def test_the_command_fails_in_one_sentence(tmp_path, monkeypatch, capsys, words, word):
    vision_or_skip()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.pth").write_bytes(b"")
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(asirra.main([*words, "--weights", "w.pth"]))
    assert stop.value.code != 0
    assert word in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["w.pth"]


# ---- downloads ----------------------------------------------------------------------------------


class Ranged(SimpleHTTPRequestHandler):
    """Serves a folder and understands ``Range: bytes=n-``."""

    def do_GET(self):
        data = Path(self.translate_path(self.path)).read_bytes()
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    (tmp_path / "www").mkdir()
    handler = partial(Ranged, directory=str(tmp_path / "www"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield tmp_path / "www", f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def test_a_download_resumes_and_is_checked(server, tmp_path):
    www, url = server
    (www / "f.bin").write_bytes(bytes(range(256)) * 100)
    digest = vision.sha256(www / "f.bin")
    target = tmp_path / "got" / "f.bin"
    target.parent.mkdir()
    target.with_name("f.bin.part").write_bytes((www / "f.bin").read_bytes()[:1000])
    assert vision.download(f"{url}/f.bin", target, digest, progress=False) == target
    assert vision.sha256(target) == digest
    assert vision.download("http://127.0.0.1:1/never", target, digest[:8], progress=False) == target


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    www, url = server
    (www / "f.bin").write_bytes(b"other")
    with pytest.raises(FeaturesError, match="wrong checksum"):
        vision.download(f"{url}/f.bin", tmp_path / "f.bin", "00" * 32, progress=False)
    assert not list(tmp_path.glob("f.bin*"))


def test_an_unreachable_host_says_how_to_go_on(tmp_path):
    with pytest.raises(FeaturesError, match="run again to resume"):
        vision.download("http://127.0.0.1:1/x", tmp_path / "x", "00", progress=False)


# ---- the network --------------------------------------------------------------------------------


def vision_or_skip():
    if os.environ.get("CI") != "true":
        pytest.importorskip("torch", reason="torch (extra: vision) is not installed")
    try:
        return vision.import_torchvision()
    except FeaturesError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def test_a_clean_torchvision_is_left_alone(tmp_path):
    pytest.importorskip("torch", reason="torch (extra: vision) is not installed")
    (tmp_path / "torchvision.py").write_text("name = 'clean'\n")
    code = (
        "from banditlib.paper import vision; t = vision.import_torchvision();"
        "assert t.name == 'clean' and not hasattr(t, '_banditlib_operators')"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_missing_operators_are_declared(tmp_path):
    pytest.importorskip("torch", reason="torch (extra: vision) is not installed")
    (tmp_path / "torchvision.py").write_text(
        "import torch\n"
        "try:\n    torch.ops.torchvision.nms\n"
        "except AttributeError:\n"
        "    raise RuntimeError('operator torchvision::nms does not exist')\n"
    )
    code = (
        "from banditlib.paper import vision; t = vision.import_torchvision();"
        "assert t._banditlib_operators"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


@pytest.mark.parametrize("preprocess", sorted(asirra.FILES))
def test_a_seeded_random_network_on_tiny_images(tmp_path, preprocess):
    vision_or_skip()
    net = vision.network(None, preprocess, seed=3)
    source = folder(tmp_path / "in")
    outs = [
        vision.extract(source, tmp_path / str(b), net, preprocess, batch=b, progress=False)
        for b in (2, 5)
    ]
    a, b = (asirra.read(path) for path in outs)
    assert a.dim == 512 and len(a.good) == 3 and np.abs(a.good - b.good).max() < 2e-3


def test_wrong_weights_are_named(tmp_path):
    vision_or_skip()
    (tmp_path / "w.pth").write_bytes(b"no weights")
    with pytest.raises(FeaturesError, match="not a ResNet-18 state dict"):
        vision.network(tmp_path / "w.pth", "standard")


@pytest.mark.slow
@pytest.mark.parametrize("preprocess", sorted(asirra.FILES))
def test_features_agree_with_the_stored_ones(tmp_path, preprocess):
    if not (SHARED / "resnet18.pth").exists():
        pytest.skip("sample images and weights are not beside the project (../shared/data/asirra)")
    vision_or_skip()
    out = vision.prepare(
        str(SHARED / "images"), str(SHARED / "resnet18.pth"), preprocess, str(tmp_path), False
    )
    ours, stored = asirra.read(out), asirra.read(SHARED / asirra.FILES[preprocess])
    for name in ("good", "bad"):
        place = {i: n for n, i in enumerate(getattr(stored, f"{name}_ids"))}
        rows = [place[i] for i in getattr(ours, f"{name}_ids")]
        a, b = getattr(ours, name), getattr(stored, name)[rows]
        assert (a * b).sum(axis=1).min() >= 0.9999
        assert np.abs(a - b).max() <= 2e-3


# --- the sweep ------------------------------------------------------------------------------------


def test_the_point_shown_has_most_runs_and_least_regret():
    lucky, full, worse = np.array([[0, 1]]), np.array([[1, 3], [0, 4]]), np.array([[2, 5], [2, 6]])
    point, runs = sweep.best({(1, 1): lucky, (1, 3): worse, (3, 1): full})
    assert point == (3, 1) and runs is full


def test_every_run_of_the_figures_is_stored():
    for name in sweep.PANELS:
        wanted = {key(config) for config in sweep.panel_cells(name, "full")}
        assert {key(cell.config) for cell in stored(name)} == wanted


def test_weaker_features_are_run_where_the_standard_ones_are_best():
    cells = stored("figure-1b") + stored("figure-4")
    excess = []
    for panels in sweep.PANELS.values():
        for zeta, gammas in panels.items():
            curves = sweep.curves(cells, zeta)
            assert len(curves) == len(gammas) + 1
            for grid in curves.values():
                least = sweep.best(grid)[1][:, -1].mean()
                excess.append(grid[sweep.PICK][:, -1].mean() / least - 1)
    assert sum(more > 0 for more in excess) == 1  # "of all curves but one that nearly ties"
    assert max(excess) <= 0.01


def test_sentences_at_one_grid_point_look_at_no_other():
    cells = stored("figure-1b") + stored("figure-4")
    point = (1.0, 3.0)
    there = [c for c in cells if (c.config["policy"]["beta"], c.config["policy"]["lam"]) == point]
    assert sweep.sentences(cells, point) == sweep.sentences(there)
    assert sweep.sentences(cells, point) != sweep.sentences(cells)


def made_up(total, late):
    """Cells of all panels at PICK, four runs, with given totals and second halves."""
    marks = [250_000, 500_000, 1_000_000]
    for name in sweep.PANELS:
        for config in sweep.panel_cells(name, "full"):
            policy, trial = config["policy"], config["trials"][0]
            if (policy["beta"], policy["lam"]) == sweep.PICK and trial < 4:
                end = total(config["zeta"], sweep.row_of(policy)) + trial % 2
                early = end - late(config["zeta"], sweep.row_of(policy))
                wrong = np.array([[early, early, end]])
                yield Cell({**config, "checkpoints": marks}, {"wrong": wrong}, {})


def test_the_papers_sentences_on_made_up_runs():
    def total(zeta, row):
        axes = sweep.AXES[zeta]
        return axes[1] if row == "SupLinUCB" else axes[0] - (row != "Γ = 0") * 1000

    def words(late):
        found = sweep.sentences(list(made_up(total, late)))
        return {claim: {s.verdict for _, s in seen} for claim, seen in found.items()}

    as_printed = words(lambda zeta, row: total(zeta, row) // 2 if zeta == 0.5 else 0)
    assert set(map(frozenset, as_printed.values())) == {frozenset({"reproduced"})}
    reverse = words(lambda zeta, row: 0 if zeta == 0.5 else total(zeta, row) // 2)
    assert reverse["constant"] == reverse["half"] == {"not reproduced"}
    assert reverse["sup"] == {"reproduced", "not reproduced"}  # higher, but not constant
