"""Downloads: cut short, they go on; only the right bytes are kept."""

from __future__ import annotations

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from banditlib.paper import vision
from banditlib.paper.download import Remote, download
from banditlib.paper.features import FeaturesError

CONTENT = bytes(range(256)) * 100


class Ranged(SimpleHTTPRequestHandler):
    """Serves a folder, understands ``Range: bytes=n-``, and may cut an answer short."""

    cut: int | None = None  # bytes sent for one request
    promise = True  # whether Content-Length is sent
    ranges = True
    asked: list[int]

    def do_GET(self):
        data = Path(self.translate_path(self.path)).read_bytes()
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1]) if self.ranges else 0
        self.asked.append(start)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if self.promise:
            self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:][: self.cut])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """A folder, its address, and the class that serves it."""
    (tmp_path / "www").mkdir()
    kind = type("Server", (Ranged,), {"asked": []})
    handler = partial(kind, directory=str(tmp_path / "www"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield tmp_path / "www", f"http://127.0.0.1:{httpd.server_port}", kind
        httpd.shutdown()


def remote(url: str, content: bytes = CONTENT) -> Remote:
    return Remote(f"{url}/f.bin", len(content), hashlib.sha256(content).hexdigest())


def test_a_download_goes_on_where_it_stopped_and_is_checked(server, tmp_path):
    www, url, kind = server
    (www / "f.bin").write_bytes(CONTENT)
    target = tmp_path / "got" / "f.bin"
    target.parent.mkdir()
    target.with_name("f.bin.part").write_bytes(CONTENT[:1000])
    assert download(remote(url), target, progress=False) == target
    assert target.read_bytes() == CONTENT and kind.asked == [1000]
    assert download(remote("http://127.0.0.1:1"), target, progress=False) == target, "is there"


@pytest.mark.parametrize("promise", [True, False])
def test_a_download_cut_short_is_kept_and_goes_on(server, tmp_path, promise):
    www, url, kind = server
    (www / "f.bin").write_bytes(CONTENT)
    kind.cut, kind.promise = 2000, promise
    with pytest.raises(FeaturesError, match=r"cut short: 10000 of 25600 bytes .* run again"):
        download(remote(url), tmp_path / "f.bin", progress=False)
    assert (tmp_path / "f.bin.part").read_bytes() == CONTENT[:10_000]
    kind.cut = None
    download(remote(url), tmp_path / "f.bin", progress=False)
    assert (tmp_path / "f.bin").read_bytes() == CONTENT
    assert kind.asked == [0, 2000, 4000, 6000, 8000, 10_000]


def test_a_server_without_ranges_starts_again(server, tmp_path):
    www, url, kind = server
    (www / "f.bin").write_bytes(CONTENT)
    (tmp_path / "f.bin.part").write_bytes(b"x" * 500)
    kind.ranges = False
    download(remote(url), tmp_path / "f.bin", progress=False)
    assert (tmp_path / "f.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "other",
    [CONTENT[:-1] + b"?", CONTENT + b"more", CONTENT * 1000],
    ids=["of the same length", "longer", "much longer"],
)
def test_another_file_is_deleted(server, tmp_path, other):
    www, url, _ = server
    (www / "f.bin").write_bytes(other)
    with pytest.raises(FeaturesError, match="not the file that was expected"):
        download(remote(url), tmp_path / "f.bin", progress=False)
    assert not list(tmp_path.glob("f.bin*"))


def test_a_whole_part_is_not_fetched_again(tmp_path):
    (tmp_path / "f.bin.part").write_bytes(CONTENT)
    download(remote("http://127.0.0.1:1"), tmp_path / "f.bin", progress=False)
    assert (tmp_path / "f.bin").read_bytes() == CONTENT


def test_a_link_in_the_place_of_the_part_is_not_followed(server, tmp_path):
    www, url, _ = server
    (www / "f.bin").write_bytes(CONTENT)
    (tmp_path / "precious").write_bytes(b"mine")
    (tmp_path / "f.bin.part").symlink_to(tmp_path / "precious")
    download(remote(url), tmp_path / "f.bin", progress=False)
    assert (tmp_path / "precious").read_bytes() == b"mine"


def test_a_wrong_file_in_the_place_is_not_overwritten(tmp_path):
    (tmp_path / "f.bin").write_bytes(b"mine")
    with pytest.raises(FeaturesError, match="delete it and run again"):
        download(remote("http://127.0.0.1:1"), tmp_path / "f.bin", progress=False)
    assert (tmp_path / "f.bin").read_bytes() == b"mine"


def test_an_unreachable_host_says_how_to_go_on(tmp_path):
    with pytest.raises(FeaturesError, match="run again to go on"):
        download(remote("http://127.0.0.1:1"), tmp_path / "f.bin", progress=False)


def test_a_server_that_refuses_is_quoted(server, tmp_path):
    _, url, kind = server
    kind.do_GET = lambda self: self.send_error(403)
    with pytest.raises(FeaturesError, match="answered 403"):
        download(remote(url), tmp_path / "f.bin", progress=False)


def test_what_the_command_downloads_is_known_by_its_whole_digest():
    size, digest = vision.WEIGHTS
    assert size > 0 and len(digest) == len(vision.IMAGES.digest) == 64
    assert vision.IMAGES.size > 0
