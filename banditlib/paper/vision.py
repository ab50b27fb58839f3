"""Images to features: ``banditlib data asirra`` (needs the `vision` extra).

Features are computed in batches. Each is written whole, under the digest of the pictures that it
came from, so an interrupted run goes on where it stopped, and never with the vectors of others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlib.files import sha256, write_whole
from banditlib.npz import DamagedFileError, read_npz
from banditlib.paper.download import Remote, download
from banditlib.paper.exits import MISSING
from banditlib.paper.features import FILES, INPUTS, FeaturesError, read
from banditlib.paper.pictures import Picture, Unreadable, decoded, pictures

IMAGES = Remote(
    "https://download.microsoft.com/download/3/E/1/"
    "3E1C3F21-ECDB-4869-8368-6DEBA77B919F/kagglecatsanddogs_5340.zip",
    824_887_076,
    "b7974bd00a84a99921f36ee4403f089853777b5ae8d151c76a86e64900334af9",
)
# The address is torchvision's own, ResNet18_Weights.IMAGENET1K_V1.url.
WEIGHTS = (46_830_571, "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec")


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
            'torch is not installed; pip install -e ".[vision]" in the clone and run again'
        ) from None
    try:
        import torchvision
    except ImportError:
        raise FeaturesError(
            'torchvision is not installed; pip install -e ".[vision]" in the clone and run again'
        ) from None
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
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
    """What turns pictures into vectors, in two steps, and a record of its making.

    `prepare` takes one picture (of Pillow) to an array of fixed shape, `features` many of these to
    one vector each: only one picture of full size is in memory at a time.
    """

    prepare: Callable[[Any], NDArray[np.float32]]
    features: Callable[[NDArray[np.float32]], NDArray[np.float32]]
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

    def prepare(picture: Any) -> NDArray[np.float32]:
        return np.asarray(transform(picture).numpy())

    def features(batch: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            return np.asarray(model(torch.from_numpy(batch).to(device)).float().cpu().numpy())

    return Network(prepare, features, digest, device)


def _transform(torchvision: Any, preprocess: str) -> Callable[[Any], Any]:
    """How a picture enters the network; `features.INPUTS` says it in words."""
    if preprocess not in FILES:
        raise FeaturesError(f"preprocess is {preprocess!r}, expected one of {', '.join(FILES)}")
    standard = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.transforms()
    if preprocess == "standard":
        return standard
    steps = torchvision.transforms
    side = 48 if preprocess == "tiny-48" else 64
    chain = [steps.Resize((side, side), antialias=True), steps.ToTensor()]
    if preprocess == "tiny-48":
        chain.append(steps.Normalize(standard.mean, standard.std))
    if preprocess == "tiny-bgr":
        chain.append(lambda pixels: pixels.flip(0))
    return steps.Compose(chain)


def extract(
    images: str | Path,
    out: str | Path,
    net: Network,
    preprocess: str = "standard",
    batch: int = 64,
    progress: bool = True,
) -> Path:
    """Compute the features of all readable images and write one compact ``.npz``.

    Returns the path of the file. Batches already on disk for the same images (their bytes, not
    their names), network and preprocessing are not computed again.
    """
    from tqdm import tqdm

    out = Path(out)
    target = out / FILES[preprocess]
    found = pictures(images)
    parts = out / f".parts-{preprocess}"
    starts = tqdm(range(0, len(found), batch), unit="batch", disable=None if progress else True)
    whole = [_part(found[start : start + batch], parts, net, preprocess) for start in starts]
    full = [w for w in whole if len(w["id"])]
    bad = [str(name) for w in whole for name in w["bad"]]
    if not full:
        raise FeaturesError(
            f"images: none of the {len(found)} files is a readable JPEG; the first: {bad[0]}"
        )
    label, ids, vectors = (
        np.concatenate([w[name] for w in full]) for name in ("label", "id", "vector")
    )
    for name, number in (("cat", 0), ("dog", 1)):
        if not (label == number).any():
            raise FeaturesError(f"images: {images} holds no readable {name}")
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    unit = (vectors / np.maximum(norms, 1e-30)[:, None]).astype(np.float16)
    meta = {
        "images": f"{int((label == 0).sum())} cats and {int((label == 1).sum())} dogs",
        "unreadable": bad,
        "images_sha256": hashlib.sha256("".join(str(w["key"]) for w in whole).encode()).hexdigest(),
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


def _part(
    some: list[Picture], folder: Path, net: Network, preprocess: str
) -> dict[str, NDArray[Any]]:
    """The vectors of some pictures, from `folder` if they were computed before."""
    digests = [picture.digest() for picture in some]
    said = "\n".join(f"{p.name} {digest}" for p, digest in zip(some, digests, strict=True))
    key = hashlib.sha256(f"{net.digest}\n{preprocess}\n{said}".encode()).hexdigest()
    path = folder / f"{key[:32]}.npz"
    part = _stored(path, key)
    if part is None:
        part = _batch(some, digests, net) | {"key": np.array(key)}
        _write(path, **part)
    return part


def _stored(path: Path, key: str) -> dict[str, NDArray[Any]] | None:
    try:
        part = read_npz(path)
        return part if str(part["key"]) == key else None
    except (FileNotFoundError, DamagedFileError, KeyError):
        return None


def _batch(some: list[Picture], digests: list[str], net: Network) -> dict[str, NDArray[Any]]:
    good: list[Picture] = []
    bad: list[str] = []
    ready: list[NDArray[np.float32]] = []
    for picture, digest in zip(some, digests, strict=True):
        try:
            data = picture.content()
            if hashlib.sha256(data).hexdigest() != digest:
                raise FeaturesError(f"images: {picture.name} changed while it was read; run again")
            ready.append(net.prepare(decoded(data)))
            good.append(picture)
        except Unreadable as error:
            bad.append(f"{picture.name} {error}")
    vectors = net.features(np.stack(ready)) if ready else np.zeros((0, 0), np.float32)
    return {
        "label": np.array([picture.label == "dog" for picture in good], dtype=np.int8),
        "id": np.array([picture.id for picture in good], dtype=np.int32),
        "vector": vectors.astype(np.float32),
        "bad": np.array(bad, dtype=np.str_),
    }


def _write(path: Path, **arrays: NDArray[Any]) -> None:
    write_whole(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


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
        remote = Remote(torchvision.models.ResNet18_Weights.IMAGENET1K_V1.url, *WEIGHTS)
        file = download(remote, downloads / remote.name, progress)
    else:
        file = Path(weights)
        if not file.is_file():
            raise FeaturesError(f"weights: {file} does not exist")
    source: Path = (
        download(IMAGES, downloads / IMAGES.name, progress) if images is None else Path(images)
    )
    if images is not None:
        pictures(source)
    return extract(source, out, network(file, preprocess), preprocess, progress=progress)


def main(argv: Sequence[str]) -> int:
    """``banditlib data asirra``: images to features. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="banditlib data asirra",
        description="Compute ResNet-18 features of the Asirra cats and dogs, or resume doing so. "
        "What is not given is downloaded: 0.8 GB of images, 45 MB of weights. Needs the vision "
        'extra: pip install -e ".[vision]" in the clone.',
        epilog="Exit codes: 0 done, 2 wrong usage, 4 something is missing or damaged (the message "
        "says what).",
    )
    parser.add_argument("--images", metavar="ZIP|DIR", help="the archive, or a folder of images")
    parser.add_argument("--weights", metavar="FILE", help="a ResNet-18 state dict")
    parser.add_argument(
        "--input",
        choices=list(INPUTS),
        default="standard",
        help="how pictures enter the network; "
        + "; ".join(f"{name}: {words}" for name, words in INPUTS.items())
        + " (default: standard)",
    )
    parser.add_argument("--out", metavar="DIR", default="data/asirra", help="default: data/asirra")
    options = parser.parse_args(argv)
    try:
        path = prepare(options.images, options.weights, options.input, options.out)
    except FeaturesError as error:
        print(f"banditlib data asirra: {error}", file=sys.stderr)
        return MISSING
    features = read(path)
    print(f"{path}: {len(features.good)} cats and {len(features.bad)} dogs in {features.dim}-d")
    if unreadable := features.meta.get("unreadable"):
        print(f"left out as unreadable: {', '.join(unreadable)}")
    return 0
