"""What archives and readers are told of the project: one version, one title, every module."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml
from conftest import ROOT
from fastjsonschema import JsonSchemaException
from schemas import validate

import banditlib
from book.extensions import downloads, module_map

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
ZENODO = json.loads((ROOT / ".zenodo.json").read_text("utf8"))
CODEMETA = json.loads((ROOT / "codemeta.json").read_text("utf8"))


def test_citation_follows_its_schema():
    schema = "builtin_schemas/vendor/citation-file-format.json"
    validate(CITATION, "check_jsonschema", schema)
    for wrong in ({"date-released": "yesterday"}, {"authors": []}, {"license": "ours"}):
        with pytest.raises(JsonSchemaException):
            validate({**CITATION, **wrong}, "check_jsonschema", schema)


def test_all_say_the_same():
    others = (CITATION, ZENODO, CODEMETA)
    for version in (banditlib.__version__, *(other["version"] for other in others)):
        assert version == PROJECT["version"]
    assert ZENODO["title"] == CITATION["title"]
    assert ZENODO["keywords"] == CODEMETA["keywords"] == CITATION["keywords"]
    assert CITATION["license"] == PROJECT["license"] == CODEMETA["license"].rsplit("/", 1)[1]
    (paper,) = CITATION["references"]
    assert CODEMETA["referencePublication"]["name"] == paper["title"]
    assert ZENODO["related_identifiers"][0]["identifier"] == paper["identifiers"][0]["value"]


def test_architecture_page_names_every_module():
    for folder in ("banditlib", "book"):
        listed = {name for name, _ in module_map.modules(folder)}
        files = (ROOT / folder).rglob("*.py")
        tree = {
            ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            for path in files
            if "_static" not in path.parts
        }
        assert listed == tree
        for name, job in module_map.modules(folder):
            assert len(job) > 15, f"{name} does not say in a sentence what it is for"


def test_paths_pass_through_rooms_that_exist():
    assert module_map.missing_rooms() == []
    picture = module_map.draw()
    assert all(title in picture for title in module_map.PATHS)


def test_crate_lists_each_result_with_its_hash(tmp_path):
    (tmp_path / "table-1.csv").write_text("a,b\n1,2\n")
    graph = json.loads(downloads.crate(tmp_path, ["table-1.csv"]))["@graph"]
    by_id = {item["@id"]: item for item in graph}
    assert by_id["./"]["hasPart"] == [{"@id": "table-1.csv"}]
    assert by_id[downloads.CRATE]["about"] == {"@id": "./"}
    assert by_id["table-1.csv"]["contentSize"] == "8" and len(by_id["table-1.csv"]["sha256"]) == 64
