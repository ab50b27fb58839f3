"""Is a document what its format asks for? By the schemas that installed packages carry."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fastjsonschema


def validate(document: Any, package: str, schema: str) -> None:
    """Hold a document against a schema file of a package, which is not imported: that takes long.

    `fastjsonschema.JsonSchemaException` names what is wrong.
    """
    found = find_spec(package)
    assert found is not None and found.origin is not None, f"{package} is not installed"
    path = Path(found.origin).parent / schema
    plain = json.loads(json.dumps(document, default=str))  # YAML's dates as they were written
    fastjsonschema.compile(json.loads(path.read_text("utf8")))(plain)
