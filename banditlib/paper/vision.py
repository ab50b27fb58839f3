"""Images to features: ``banditlib data asirra`` (needs the `vision` extra).

Images are read straight out of the archive, never unpacked, so no path can escape and no bomb
can fill the disk. Features are computed in batches, each written whole or not at all, so an
interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlib.paper.asirra import FILES, FeaturesError

IMAGES_URL = (
    "https://download.microsoft.com/download/3/E/1/"
    "3E1C3F21-ECDB-4869-8368-6DEBA77B919F/kagglecatsanddogs_5340.zip"
)
IMAGES_SHA256 = "b7974bd00a84a99921f36ee4403f089853777b5ae8d151c76a86e64900334af9"
WEIGHTS_SHA256_PREFIX = "f37072fd"
# Both layouts: PetImages/Cat/12.jpg (Microsoft) and train/cat.12.jpg (Kaggle).
_NAME = re.compile(r"(?:^|/)(cat|dog)s?(?:/|\.)(\d+)\.jpe?g$", re.IGNORECASE)
_LARGEST_FILE = 64 << 20
_LARGEST_IMAGE = 64_000_000  # pixels


@dataclass(frozen=True)
class Picture:
    """One image of the collection: its class, its id, and how to get its bytes."""

    label: str
    id: int
    read: Callable[[], bytes]


def pictures(source: str | Path) -> list[Picture]:
    """List the cats and dogs in a folder or a zip archive, cats first, by id."""
    source = Path(source)
    if source.is_dir():
        found = [
            (match, path)
            for path in sorted(source.rglob("*"))
            if (match := _NAME.search(path.as_posix())) and path.is_file()
        ]
        items = [Picture(m[1].lower(), int(m[2]), p.read_bytes) for m, p in found]
    elif source.is_file():
        items = list(_zipped(source))
    else:
        raise FeaturesError(f"images: {source} is neither a folder nor a zip archive")
    if not items:
        raise FeaturesError(f"images: {source} holds no image named like Cat/12.jpg or cat.12.jpg")
    seen: dict[tuple[str, int], Picture] = {}
    for item in items:
        if (item.label, item.id) in seen:
            raise FeaturesError(f"images: {source} holds {item.label} {item.id} twice")
        seen[item.label, item.id] = item
    return [seen[key] for key in sorted(seen)]


def _zipped(source: Path) -> Iterator[Picture]:
    try:
        archive = zipfile.ZipFile(source)
    except zipfile.BadZipFile as error:
        raise FeaturesError(
            f"images: {source} is not a whole zip archive ({error}); it may be truncated: "
            "delete it and download it again"
        ) from None
    for entry in archive.infolist():
        match = _NAME.search(entry.filename)
        if match and not entry.is_dir():
            yield Picture(match[1].lower(), int(match[2]), _member(archive, entry))


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        if entry.file_size > _LARGEST_FILE:
            raise OSError(f"{entry.filename} claims {entry.file_size} bytes")
        with archive.open(entry) as stream:
            data = stream.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise OSError(f"{entry.filename} unpacks to more than {_LARGEST_FILE} bytes")
        return data

    return read


def sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def download(url: str, target: Path, digest: str, progress: bool = True) -> Path:
    """Fetch `url` to `target`, resuming a partial download; refuse a wrong checksum.

    `digest` is the SHA-256 or the beginning of it.
    """
    from tqdm import tqdm

    if target.is_file():
        if sha256(target).startswith(digest):
            return target
        raise FeaturesError(f"{target} has the wrong checksum; delete it and run again")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            fresh = answer.status != 206
            size = int(answer.headers.get("Content-Length") or 0) + (0 if fresh else done)
            with (
                part.open("wb" if fresh else "ab") as stream,
                tqdm(
                    total=size or None,
                    initial=0 if fresh else done,
                    unit="B",
                    unit_scale=True,
                    desc=target.name,
                    disable=None if progress else True,
                ) as bar,
            ):
                while piece := answer.read(1 << 18):
                    stream.write(piece)
                    bar.update(len(piece))
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise FeaturesError(f"{url} answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise FeaturesError(
            f"could not download {url} ({getattr(error, 'reason', error)}); run again to resume, "
            "or fetch it yourself and name the file on the command line"
        ) from None
    if not sha256(part).startswith(digest):
        part.unlink()
        raise FeaturesError(f"{url} arrived with a wrong checksum and was deleted; run again")
    part.replace(target)
    return target


def import_torchvision() -> Any:
    """Import torchvision, also beside a torch for which its compiled operators do not load.

    A torchvision wheel built for CUDA fails to import beside a CPU build of torch, because two
    operators of its detection models are not registered. We need none of them, so we declare
    their signatures and import again; where torchvision imports by itself nothing is touched.
    """
    try:
        import torch
    except ImportError:
        raise FeaturesError(
            "torch is not installed; pip install 'banditlib[vision]' and run again"
        ) from None
    try:
        import torchvision
    except ImportError:
        raise FeaturesError(
            "torchvision is not installed; pip install 'banditlib[vision]' and run again"
        ) from None
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        import sys

        for name in [m for m in sys.modules if m.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision

        torchvision._banditlib_operators = library  # the declarations live as long as this
    return torchvision


@dataclass(frozen=True)
class Network:
    """What turns images into vectors: a function on a batch and a record of its making."""

    features: Callable[[list[Any]], NDArray[np.float32]]
    digest: str
    device: str


def network(weights: Path | None, preprocess: str, seed: int | None = None) -> Network:
    """ResNet-18 without its last layer, with `weights` (or, for tests, random ones by `seed`)."""
    torchvision = import_torchvision()
    import torch

    model = torchvision.models.resnet18()
    if weights is None:
        torch.manual_seed(0 if seed is None else seed)
        model = torchvision.models.resnet18()
        digest = f"random, seed {seed}"
    else:
        digest = sha256(weights)
        try:
            state = torch.load(weights, map_location="cpu", weights_only=True)
            model.load_state_dict(state)
        except Exception as error:
            raise FeaturesError(
                f"weights: {weights} is not a ResNet-18 state dict ({str(error).splitlines()[0]})"
            ) from None
    model.fc = torch.nn.Identity()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.eval().to(device)
    transform = _transform(torchvision, preprocess)

    def features(images: list[Any]) -> NDArray[np.float32]:
        with torch.inference_mode():
            batch = torch.stack([transform(image) for image in images]).to(device)
            return np.asarray(model(batch).float().cpu().numpy())

    return Network(features, digest, device)


def _transform(torchvision: Any, preprocess: str) -> Callable[[Any], Any]:
    if preprocess == "standard":
        return torchvision.models.ResNet18_Weights.IMAGENET1K_V1.transforms()
    if preprocess != "tiny":
        raise FeaturesError(f"preprocess is {preprocess!r}, expected one of {', '.join(FILES)}")
    v1 = torchvision.transforms
    return v1.Compose([v1.Resize((64, 64), antialias=True), v1.ToTensor()])


def opened(picture: Picture) -> Any | None:
    """The decoded RGB image, or None if the file is not a readable image."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = _LARGEST_IMAGE
    try:
        image = Image.open(io.BytesIO(picture.read()))
        if image.width * image.height > _LARGEST_IMAGE:
            return None
        return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, zipfile.BadZipFile, Image.DecompressionBombError):
        return None


def extract(
    images: str | Path,
    out: str | Path,
    net: Network,
    preprocess: str = "standard",
    batch: int = 64,
    progress: bool = True,
) -> Path:
    """Compute the features of all readable images and write one compact ``.npz``.

    Returns the path of the file. Batches already on disk for the same images, network and
    preprocessing are not computed again.
    """
    from tqdm import tqdm

    out = Path(out)
    target = out / FILES[preprocess]
    found = pictures(images)
    names = ",".join(f"{p.label}{p.id}" for p in found)
    key = hashlib.sha256(f"{names}|{net.digest}|{preprocess}|{batch}".encode()).hexdigest()[:16]
    parts = out / f".parts-{key}"
    parts.mkdir(parents=True, exist_ok=True)
    for start in tqdm(
        range(0, len(found), batch), unit="batch", disable=None if progress else True
    ):
        piece = parts / f"{start:06d}.npz"
        if not _readable(piece):
            _write(piece, **_batch(found[start : start + batch], net))
    whole = [dict(np.load(parts / f"{start:06d}.npz")) for start in range(0, len(found), batch)]
    full = [w for w in whole if len(w["id"])]
    if not full:
        raise FeaturesError(f"images: none of the {len(found)} files is a readable image")
    label, ids, vectors = (
        np.concatenate([w[name] for w in full]) for name in ("label", "id", "vector")
    )
    bad = np.concatenate([w["bad"] for w in whole])
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    unit = (vectors / np.maximum(norms, 1e-30)[:, None]).astype(np.float16)
    meta = {
        "images": f"{int((label == 0).sum())} cats and {int((label == 1).sum())} dogs",
        "unreadable": [str(name) for name in bad],
        "images_sha256": hashlib.sha256(b"".join(w["crc"].tobytes() for w in whole)).hexdigest(),
        "weights": net.digest,
        "preprocessing": preprocess,
        "device": net.device,
        "dtype": "float16 of the unit vectors: renormalise in float64 after loading",
    }
    cats, dogs = label == 0, label == 1
    _write(
        target,
        cats=unit[cats],
        dogs=unit[dogs],
        cat_ids=ids[cats],
        dog_ids=ids[dogs],
        cat_norms=norms[cats].astype(np.float32),
        dog_norms=norms[dogs].astype(np.float32),
        meta=np.array(json.dumps(meta)),
    )
    shutil.rmtree(parts)
    return target


def _batch(some: list[Picture], net: Network) -> dict[str, NDArray[Any]]:
    decoded = [(picture, opened(picture)) for picture in some]
    good = [(picture, image) for picture, image in decoded if image is not None]
    bad = [f"{picture.label} {picture.id}" for picture, image in decoded if image is None]
    vectors = net.features([image for _, image in good]) if good else np.zeros((0, 0), np.float32)
    crc = [hashlib.sha256(image.tobytes()).digest()[:8] for _, image in good]
    return {
        "label": np.array([picture.label == "dog" for picture, _ in good], dtype=np.int8),
        "id": np.array([picture.id for picture, _ in good], dtype=np.int32),
        "vector": vectors.astype(np.float32),
        "crc": np.frombuffer(b"".join(crc), dtype="<u8"),
        "bad": np.array(bad, dtype="U16"),
    }


def _readable(path: Path) -> bool:
    try:
        with np.load(path, allow_pickle=False) as data:
            return {"label", "id", "vector", "crc", "bad"} <= set(data.files)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return False


def _write(path: Path, **arrays: NDArray[Any]) -> None:
    """Write an ``.npz`` whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def prepare(
    images: str | None = None,
    weights: str | None = None,
    preprocess: str = "standard",
    out: str = "data/asirra",
    progress: bool = True,
) -> Path:
    """What ``banditlib data asirra`` does; downloads what is not given."""
    if preprocess not in FILES:
        raise FeaturesError(f"preprocess is {preprocess!r}, expected one of {', '.join(FILES)}")
    torchvision = import_torchvision()
    downloads = Path(out) / "downloads"
    if weights is None:
        url = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.url
        file = download(url, downloads / Path(url).name, WEIGHTS_SHA256_PREFIX, progress)
    else:
        file = Path(weights)
        if not file.is_file():
            raise FeaturesError(f"weights: {file} does not exist")
    source: Path = (
        download(IMAGES_URL, downloads / Path(IMAGES_URL).name, IMAGES_SHA256, progress)
        if images is None
        else Path(images)
    )
    if images is not None:
        pictures(source)
    return extract(source, out, network(file, preprocess), preprocess, progress=progress)
