"""Where the project lives: a setting, else the CI, else the git remote, else nowhere."""

from __future__ import annotations

import subprocess

import pytest

from book import address
from book.extensions.words import plain_formula


@pytest.fixture
def clone(tmp_path):
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def point(clone, url):
    subprocess.run(["git", "-C", str(clone), "remote", "add", "origin", url], check=True)


def test_the_setting_comes_first(clone):
    point(clone, "https://github.com/a/remote")
    ci = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "b/ci"}
    assert address.repository("https://github.com/c/set/", clone, ci) == "https://github.com/c/set"
    assert address.repository("", clone, ci) == "https://github.com/b/ci"
    assert address.repository("", clone, {}) == "https://github.com/a/remote"
    gitlab = {"CI_PROJECT_URL": "https://gitlab.com/d/ci"}
    assert address.repository("", clone, gitlab) == "https://gitlab.com/d/ci"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@github.com/a/b.git", "https://github.com/a/b"),
        ("git@github.com:a/b.git", "https://github.com/a/b"),
        ("ssh://git@github.com/a/b", "https://github.com/a/b"),
        ("/some/folder", ""),
        ("file:///some/folder", ""),
        ("../beside", ""),
    ],
)
def test_remotes_become_web_addresses(clone, url, shown):
    point(clone, url)
    assert address.repository("", clone, {}) == shown


def test_without_a_remote_there_is_no_address(clone, tmp_path):
    assert address.repository("", clone, {}) == ""
    assert address.repository("", tmp_path / "nowhere", {}) == ""


def test_github_pages_have_a_known_place():
    assert address.site("", "https://github.com/Some/Thing") == "https://some.github.io/Thing/"
    assert address.site("", "https://github.com/some/some.github.io") == "https://some.github.io/"
    assert address.site("https://book.example", "") == "https://book.example/"
    assert address.site("", "https://gitlab.com/a/b") == "" == address.site("", "")


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"\zeta\sqrt d/\Delta", "ζ√d/Δ"),
        (r"\frac{2}{3\sqrt3}\cdot\frac{\zeta}{\sqrt\lambda\,\Gamma}", "2/(3√3)·ζ/(√λ Γ)"),
        (r"\max\{1,\lceil\log_4(k/d)\rceil\}", "max{1,⌈log_4(k/d)⌉}"),
        (r"d\Delta^{-1}\log(1/\delta)", "dΔ⁻¹log(1/δ)"),
        (r"\|\mathbf x\|\ge 2^{-l}", "‖x‖≥ 2^(-l)"),
    ],
)
def test_formulas_become_words(tex, shown):
    assert plain_formula(tex) == shown
