"""Where the project lives: the address of its repository, and of the published book.

The setting ``repository`` of ``_config.yml`` comes first, then what a CI says of itself, then the
git remote of this clone. Where none of them knows, there is no address: pages have no launch, edit
or source buttons, and exported notebooks say how to install the package from a clone.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from book.extensions.cachekey import ROOT

#: The branch that the site's workflow fills with plain notebooks, for Colab and Binder.
NOTEBOOK_BRANCH = "notebooks"
GITHUB = "https://github.com/"


def from_ci(environment: Mapping[str, str]) -> str:
    """The address that GitHub's or GitLab's CI gives of the repository it runs for."""
    if name := environment.get("GITHUB_REPOSITORY"):
        return f"{environment.get('GITHUB_SERVER_URL', GITHUB).rstrip('/')}/{name}"
    return environment.get("CI_PROJECT_URL", "")


def from_remote(url: str) -> str:
    """The web address of a git remote: without user, password and ``.git``; empty for a path."""
    if match := re.fullmatch(r"(?:ssh://)?git@([\w.-]+)[:/](.+)", url):
        return f"https://{match[1]}/{match[2].removesuffix('.git')}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    return f"https://{parts.hostname}{parts.path.removesuffix('.git')}"


def remote(root: Path) -> str:
    """The remote called origin of the clone at `root`, or nothing."""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""


def repository(setting: str, root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> str:
    """The address of the repository, without a slash at its end; empty where nothing knows it."""
    found = setting or from_ci(environment) or from_remote(remote(root))
    return found.rstrip("/")


def site(setting: str, repository: str) -> str:
    """The address at which the book is published, with a slash at its end; empty if unknown.

    `setting` is Sphinx's ``html_baseurl``. A repository on GitHub has its pages at a known place.
    """
    if setting:
        return setting.rstrip("/") + "/"
    if not repository.startswith(GITHUB):
        return ""
    owner, name = repository.removeprefix(GITHUB).split("/")[:2]
    place = f"https://{owner.lower()}.github.io/"
    return place if name.lower() == f"{owner.lower()}.github.io" else f"{place}{name}/"
