"""The shape of the house: short modules, and one name for one thing."""

from collections import defaultdict
from pathlib import Path

SERVICE = Path(__file__).parents[3] / "service" / "bmq"
MOST_LINES = 350

# Each is one concept in two layers: the kernel and the index around it, or a kind and the table of kinds.
SHARED = {
    "border_grid.py",
    "construct_lists.py",
    "kinds.py",
    "scan.py",
    "shape_grid.py",
    "stab_difference.py",
}


def test_no_module_of_the_service_is_too_long_to_read_at_once() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SERVICE.rglob("*.py")}

    assert lengths
    assert {str(path): length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_no_two_modules_have_one_name_unless_they_are_about_one_thing() -> None:
    places: dict[str, list[Path]] = defaultdict(list)
    for path in SERVICE.rglob("*.py"):
        if not path.name.startswith("__"):
            places[path.name].append(path)

    assert {name for name, found in places.items() if len(found) > 1} == SHARED
