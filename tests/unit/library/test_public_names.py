"""What `import bmq` offers, costs and needs."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import bmq
from bmq.__main__ import SERVICE_PACKAGES

ROOT = Path(__file__).parents[3]
# No package of the service, and nothing that a user need not have.
BLOCKED = [
    *SERVICE_PACKAGES,
    "kafka",
    "py4j",
    "google",
    "pyogrio",
    "pyproj",
    "polars",
    "geopandas",
    "scipy",
    "dateutil",
]
BLOCK = f"""
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.split(".")[0])

sys.meta_path.insert(0, Block())
"""
USE = """
import bmq
monitor = bmq.Monitor(bmq.Feed("line", ["x"]))
monitor.put("q", {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}})
monitor.advance({"line": {"id": ["a"], "ts": [1_700_000_000_000], "x": [0.5]}})
print(monitor.events()["sign"].to_pylist())
for name in bmq.__all__:
    getattr(bmq, name)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, cwd=ROOT / "service"
    )


def test_the_document_lists_the_public_names() -> None:
    section = (ROOT / "docs" / "library.md").read_text(encoding="utf-8").partition("## The public names")[2]
    firsts = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)

    assert sorted(name for cell in firsts for name in re.findall(r"`(\w+)`", cell)) == sorted(bmq.__all__)
    assert sorted(bmq.__all__) == bmq.__all__


@pytest.mark.parametrize("name", ["BorderIndex", "MatchIndex", "BandJoin", "Monitor"])
def test_the_document_lists_the_public_methods(name: str) -> None:
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{name}` \| .*?: (.*) \|$", text, re.MULTILINE)
    public = {method for method in dir(getattr(bmq, name)) if not method.startswith("_")}

    assert set(re.findall(r"`(\w+)`", row)) == public - {"n_dims"}


def test_every_public_name_is_there_and_no_other() -> None:
    assert set(bmq.__all__) <= set(dir(bmq))
    assert all(getattr(bmq, name).__doc__ for name in bmq.__all__)
    with pytest.raises(AttributeError, match=r"no attribute 'Monitr'. Its public names are BandJoin, "):
        _ = bmq.Monitr  # type: ignore[attr-defined]


def test_the_library_needs_no_package_of_the_service() -> None:
    ran = run(BLOCK + USE)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "['+']\n"


def test_the_base_dependencies_are_what_the_library_imports() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\n"
        + USE.replace("print", "_ =")
        + (
            "import json\nprint(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before "
            "if 'site-packages' in (getattr(sys.modules[name], '__file__', None) or '')})))"
        )
    )
    ran = run(BLOCK + code)

    assert ran.returncode == 0, ran.stderr
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_pydantic = {"annotated_types", "pydantic_core", "typing_extensions", "typing_inspection"}
    found = {name for name in json.loads(ran.stdout) if not name.startswith(("_", "distutils"))}
    asked = {Requirement(line).name for line in project["dependencies"]}
    assert found - {"llvmlite"} - of_pydantic == asked


def test_the_import_is_light() -> None:
    ran = run(
        "import sys, time\nbefore = time.process_time()\nimport bmq\n"
        "print(time.process_time() - before, 'numpy' in sys.modules)"
    )

    seconds, has_numpy = ran.stdout.split()
    assert float(seconds) < 1.0
    assert has_numpy == "False"


def test_the_command_without_the_service_says_what_to_install() -> None:
    ran = run(BLOCK + "from bmq.__main__ import main\nmain()")

    assert ran.returncode == 1
    assert ran.stderr.endswith('need more: pip install "bmq[service]"\n')
    assert "Traceback" not in ran.stderr


def test_another_missing_package_is_a_fault_of_the_installation() -> None:
    ran = run(BLOCK.replace(repr(BLOCKED), "['shapely']") + "from bmq.__main__ import main\nmain()")

    assert ran.returncode == 1
    assert "ModuleNotFoundError: No module named 'shapely'" in ran.stderr
