"""From pictures to features: archives, decoding, interrupted runs, the network."""

from __future__ import annotations

import errno
import io
import os
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from attacks import SEED, record, tries

from banditlib.paper import features, pictures, vision
from banditlib.paper.features import FeaturesError
from banditlib.paper.pictures import Picture, Unreadable

PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "asirra"


def jpeg(seed: int, size: tuple[int, int] = (40, 50)) -> bytes:
    rng = np.random.default_rng(seed)
    image = PIL.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG")
    return buffer.getvalue()


def folder(path: Path, cats: int = 3, dogs: int = 2, seed: int = 0) -> Path:
    for label, n in (("Cat", cats), ("Dog", dogs)):
        (path / "PetImages" / label).mkdir(parents=True)
        for i in range(n):
            content = jpeg(seed + i + (label == "Dog") * 100)
            (path / "PetImages" / label / f"{i}.jpg").write_bytes(content)
    return path


def archive(path: Path, names: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as stream:
        for name, data in names.items():
            stream.writestr(name, data)
    return path


class Grey:
    """A stand-in network: the mean colour, repeated; counts how often it is asked."""

    def __init__(self, dies_at: int = -1) -> None:
        self.calls, self.dies_at = 0, dies_at
        self.net = vision.Network(self.prepare, self.vectors, "grey", "cpu")

    def prepare(self, picture):
        return np.asarray(picture, dtype=np.float32).mean(axis=(0, 1)) + 1

    def vectors(self, batch):
        if self.calls == self.dies_at:
            raise KeyboardInterrupt
        self.calls += 1
        return np.tile(batch, (1, 2))


def extract(source: Path, out: Path, grey: Grey | None = None, batch: int = 64) -> Path:
    return vision.extract(source, out, (grey or Grey()).net, batch=batch, progress=False)


# ---- what is in a folder or an archive ----------------------------------------------------------


def test_both_layouts_give_the_same(tmp_path):
    a = pictures.pictures(folder(tmp_path / "ms"))
    kaggle = {f"train/{p.label}.{p.id}.jpg": p.read() for p in a}
    b = pictures.pictures(archive(tmp_path / "train.zip", kaggle | {"train/notes.txt": b""}))
    assert [(p.label, p.id, p.read()) for p in a] == [(p.label, p.id, p.read()) for p in b]
    assert [p.label for p in a] == ["cat"] * 3 + ["dog"] * 2


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda p: p / "absent.zip", "neither a folder nor a zip"),
        (lambda p: p, "holds no image"),
        (lambda p: archive(p / "a.zip", {"Cat/1.jpg": b"", "x/cat.1.jpg": b""}), "cat 1 twice"),
        (lambda p: archive(p / "a.zip", {f"Cat/{'9' * 5000}.jpg": b""}), "holds no image"),
    ],
)
def test_bad_sources(tmp_path, make, word):
    with pytest.raises(FeaturesError, match=word):
        pictures.pictures(make(tmp_path))


def test_a_truncated_archive_is_named(tmp_path):
    path = archive(tmp_path / "a.zip", {"Cat/1.jpg": jpeg(0)})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FeaturesError, match="truncated"):
        pictures.pictures(path)


def test_nothing_escapes_and_no_entry_unpacks_beyond_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST_FILE", 10_000)
    path = archive(tmp_path / "a.zip", {"../../Cat/1.jpg": jpeg(0), "Dog/2.jpg": b"\0" * 20_000})
    cat, dog = pictures.pictures(path)
    assert pictures.decoded(cat.content()).size == (50, 40), "read in memory, wherever it points"
    with pytest.raises(Unreadable, match="claims 20000 bytes"):
        dog.content()
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.zip"]


def test_an_entry_that_lies_about_its_length_stops_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "LARGEST_FILE", 10_000)
    path = archive(tmp_path / "a.zip", {"Dog/2.jpg": b"\0" * 20_000})
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 20_000), struct.pack("<I", 900)))
    (dog,) = pictures.pictures(path)
    with pytest.raises(Unreadable):
        dog.content()


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"flag_bits": 1}, "encrypted"),
        ({"compress_type": zipfile.ZIP_LZMA}, "compressed in a way"),
        ({"compress_type": 99}, "compressed in a way"),
        ({"external_attr": 0o120777 << 16}, "not a plain file"),
    ],
)
def test_entries_of_a_strange_kind_are_not_opened(tmp_path, how, word):
    path = archive(tmp_path / "a.zip", {"Cat/1.jpg": jpeg(0)})
    with zipfile.ZipFile(path) as stream:
        (entry,) = stream.infolist()
        for name, value in how.items():
            setattr(entry, name, value)
        with pytest.raises(Unreadable, match=word):
            Picture("cat", 1, pictures._member(stream, entry)).content()


def test_a_fault_of_the_disk_is_no_fault_of_the_picture():
    def fails():
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(FeaturesError, match="cat 1 cannot be read"):
        Picture("cat", 1, fails).digest()


# ---- one picture --------------------------------------------------------------------------------


def claiming(width: int, height: int) -> bytes:
    """A small JPEG whose header claims another size."""
    data = jpeg(0)
    place = data.index(b"\xff\xc0") + 5
    return data[:place] + struct.pack(">HH", height, width) + data[place + 4 :]


def test_sizes_are_judged_before_anything_is_decoded(monkeypatch):
    from PIL.JpegImagePlugin import JpegImageFile

    monkeypatch.setattr(JpegImageFile, "load", lambda self: pytest.fail("it was decoded"))
    with pytest.raises(Unreadable, match="pixels"):
        pictures.decoded(claiming(60_000, 60_000))
    with pytest.raises(Unreadable, match=r"JPEG|pixels"):
        pictures.decoded(claiming(0, 100))
    with pytest.raises(Unreadable, match="scans"):
        pictures.decoded(jpeg(0) + b"\xff\xda" * 101)


def other_formats():
    image = PIL.fromarray(np.zeros((8, 8, 3), dtype=np.uint8))
    for name in ("PNG", "GIF", "BMP", "TIFF", "EPS", "PPM", "WEBP"):
        buffer = io.BytesIO()
        try:
            image.save(buffer, format=name)
        except (KeyError, OSError):
            continue  # this Pillow cannot write it
        yield name, buffer.getvalue()


def test_only_jpeg_is_decoded_and_no_other_program_starts(monkeypatch):
    for name in ("Popen", "run", "check_call", "call"):
        monkeypatch.setattr(subprocess, name, lambda *a, **k: pytest.fail("a program was started"))
    tried = dict(other_formats())
    assert "EPS" in tried
    for name, data in tried.items():
        with pytest.raises(Unreadable, match="not a JPEG"):
            pictures.decoded(data)
            pytest.fail(name)


def test_a_picture_of_several_frames_is_read_as_the_first():
    first = PIL.fromarray(np.full((8, 8, 3), 200, dtype=np.uint8))
    second = PIL.fromarray(np.zeros((8, 8, 3), dtype=np.uint8))
    buffer = io.BytesIO()
    first.save(buffer, format="MPO", save_all=True, append_images=[second])
    assert np.asarray(pictures.decoded(buffer.getvalue())).mean() > 190


# ---- from pictures to a file of features --------------------------------------------------------


def test_features_are_written_whole_with_unreadable_files_listed(tmp_path):
    source = folder(tmp_path / "in")
    (source / "PetImages" / "Cat" / "1.jpg").write_bytes(b"not an image")
    (source / "PetImages" / "Dog" / "1.jpg").write_bytes(jpeg(3)[:900])
    loaded = features.read(extract(source, tmp_path / "out", batch=2))
    assert loaded.good_ids.tolist() == [0, 2] and loaded.bad_ids.tolist() == [0]
    cat, dog = loaded.meta["unreadable"]
    assert cat == "cat 1 is not a JPEG file"
    assert dog.startswith("dog 1 is damaged") and "truncated" in dog
    assert [p.name for p in (tmp_path / "out").iterdir()] == [features.FILES["standard"]]


def test_a_folder_of_rubbish_is_named(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "cat.1.jpg").write_bytes(b"rubbish")
    with pytest.raises(FeaturesError, match="none of the 1 files"):
        extract(tmp_path / "in", tmp_path / "o")


def test_an_interrupted_run_goes_on(tmp_path):
    source, second = folder(tmp_path / "in"), Grey()
    with pytest.raises(KeyboardInterrupt):
        extract(source, tmp_path / "o", Grey(dies_at=2), batch=1)
    assert not (tmp_path / "o" / features.FILES["standard"]).exists()
    resumed = extract(source, tmp_path / "o", second, batch=1)
    fresh = extract(source, tmp_path / "p", batch=1)
    assert second.calls == 3
    assert features.read(resumed).digest() == features.read(fresh).digest()


def test_an_interrupted_run_does_not_go_on_with_other_pictures_of_the_same_names(tmp_path):
    first, other = folder(tmp_path / "first"), folder(tmp_path / "other", seed=1000)
    with pytest.raises(KeyboardInterrupt):
        extract(first, tmp_path / "o", Grey(dies_at=2), batch=1)
    mixed = features.read(extract(other, tmp_path / "o", batch=1))
    alone = features.read(extract(other, tmp_path / "p", batch=1))
    assert mixed.digest() == alone.digest()
    assert mixed.meta == alone.meta


def test_a_damaged_part_is_computed_again(tmp_path):
    source, grey = folder(tmp_path / "in"), Grey()
    with pytest.raises(KeyboardInterrupt):
        extract(source, tmp_path / "o", Grey(dies_at=2), batch=2)
    parts = sorted((tmp_path / "o").rglob("*.npz"))
    assert len(parts) == 2
    parts[0].write_bytes(parts[0].read_bytes()[:50])
    parts[1].write_bytes(parts[1].read_bytes()[:-80] + bytes(80))
    extract(source, tmp_path / "o", grey, batch=2)
    assert grey.calls == 3


def test_a_picture_that_changes_under_way_is_noticed(tmp_path):
    contents = iter([jpeg(0), jpeg(1)])
    with pytest.raises(FeaturesError, match="cat 1 changed while it was read"):
        vision._part([Picture("cat", 1, lambda: next(contents))], tmp_path, Grey().net, "standard")


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """`data` with one to three injuries."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        # Half of them where lists of contents and headers are.
        at = int(rng.integers(len(out)) if rng.random() < 0.5 else -rng.integers(1, len(out) // 4))
        length = int(rng.integers(1, 60))
        kind = rng.integers(6)
        if kind == 0:
            out[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del out[at:]
        elif kind == 2:
            out[at : at + length] = bytes(length)
        elif kind == 3:
            out[at : at + length] = rng.bytes(length)
        elif kind == 4:
            del out[at : at + length]
        else:
            out[at:at] = out[: length * 4]
        if len(out) < 60:
            break
    return bytes(out)


@pytest.mark.attack
def test_damaged_archives_end_with_a_sentence(tmp_path):
    names = {f"{k}/{i}.jpg": jpeg(i, (12, 16)) for k in ("Cat", "Dog") for i in range(3)}
    good = archive(tmp_path / "good.zip", names).read_bytes()
    path = tmp_path / "a.zip"
    came_out: Counter[str] = Counter()
    for number in range(tries(150, 3000)):
        rng = np.random.default_rng([SEED, number])
        path.write_bytes(damaged(good, rng))
        try:
            read = features.read(extract(path, tmp_path / "o", batch=4))
            left_out = 6 - len(read.good) - len(read.bad)
            assert len(read.meta["unreadable"]) <= left_out
            came_out["read with pictures left out" if left_out else "read whole"] += 1
        except FeaturesError as error:
            assert str(error).startswith("images: ")
            came_out["refused"] += 1
    record("damaged archives", **{"tried": came_out.total(), "tracebacks": 0, **came_out})


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--images", "absent"], "absent"),
        (["--input", "huge"], "invalid choice"),
    ],
)
def test_the_command_fails_in_one_sentence(tmp_path, monkeypatch, capsys, words, word):
    vision_or_skip()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.pth").write_bytes(b"")
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(vision.main([*words, "--weights", "w.pth"]))
    assert stop.value.code != 0
    assert word in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["w.pth"]


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


@pytest.mark.parametrize("preprocess", sorted(features.FILES))
def test_a_seeded_random_network_on_tiny_images(tmp_path, preprocess):
    vision_or_skip()
    net = vision.network(None, preprocess, seed=3)
    source = folder(tmp_path / "in")
    outs = [
        vision.extract(source, tmp_path / str(b), net, preprocess, batch=b, progress=False)
        for b in (2, 5)
    ]
    a, b = (features.read(path) for path in outs)
    assert a.dim == 512 and len(a.good) == 3 and np.abs(a.good - b.good).max() < 2e-3


def test_wrong_weights_are_named(tmp_path):
    vision_or_skip()
    (tmp_path / "w.pth").write_bytes(b"no weights")
    with pytest.raises(FeaturesError, match="not a ResNet-18 state dict"):
        vision.network(tmp_path / "w.pth", "standard")


@pytest.mark.slow
@pytest.mark.parametrize("preprocess", sorted(features.FILES))
def test_features_agree_with_the_stored_ones(tmp_path, preprocess):
    if not (SHARED / "resnet18.pth").exists():
        pytest.skip("sample images and weights are not beside the project (../shared/data/asirra)")
    vision_or_skip()
    out = vision.prepare(
        str(SHARED / "images"), str(SHARED / "resnet18.pth"), preprocess, str(tmp_path), False
    )
    ours, stored = features.read(out), features.read(SHARED / features.FILES[preprocess])
    for name in ("good", "bad"):
        place = {i: n for n, i in enumerate(getattr(stored, f"{name}_ids"))}
        rows = [place[i] for i in getattr(ours, f"{name}_ids")]
        a, b = getattr(ours, name), getattr(stored, name)[rows]
        assert (a * b).sum(axis=1).min() >= 0.9999
        assert np.abs(a - b).max() <= 2e-3
