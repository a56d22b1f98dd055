"""YAML that means the same as JSON: `on` is a text, a date is a text, and a name twice in one mapping is a fault.

PyYAML reads YAML 1.1, in which the field `on` of a band join is the truth value true, and 2026-01-05 is a date. Here
null, truth values and numbers are those of JSON, with the spellings `~`, `True` and `.5` beside; all else is a text.
"""

import re
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import yaml

# The C loader reads ten times as fast; PyYAML without libyaml has only the other one.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# (tag, pattern, first characters), the first that fits.
_RULES = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), [*"tTfF"]),
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z"), [*"-+0123456789"]),
    (
        "float",
        re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"),
        [*"-+.0123456789"],
    ),
    ("merge", re.compile(r"<<\Z"), ["<"]),
)


class _Loader(_LOADER):  # type: ignore[misc]  # which of the two is known at run time only
    """A loader of JSON's types."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node."""
        names = set()
        for key_node, _ in node.value:
            name = key_node.value
            # An anchor may name a list as a key, whose value is a list of nodes.
            if key_node.tag not in _TEXTS:
                raise _fault(f"the name {name!r} is no text; write it in quotes", key_node)
            if name in names:
                raise _fault(f"the name {name!r} stands twice in one mapping", key_node)
            names.add(name)
        read: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return read


class _Dumper(yaml.SafeDumper):
    """A writer that quotes what either version of YAML takes for another type than a text."""


def _represent_text(dumper: Any, text: str) -> Any:
    # PyYAML loses some line breaks in plain and single-quoted texts; and only in double quotes may a terminal show a
    # character as an escape without changing the text.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
_TEXTS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")
for _class in (_Loader, _Dumper):
    for _tag, _pattern, _first in _RULES:
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)


def read_yaml(text: str) -> list[Any]:
    """Return the documents of a text, with JSON's types.

    Raises
    ------
    ValueError
        The text is not YAML, a name is no text or stands twice, or it is nested too deeply. The message is a clause.
    """
    try:
        return list(_documents(text))
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_yaml(value: Any) -> str:
    """Return JSON's types as YAML; `read_yaml` returns the same value. Texts that look like other types are quoted."""
    written: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None
    )
    return written


def _documents(text: str) -> Iterator[Any]:
    loader = _Loader(text)
    try:
        while loader.check_data():
            yield loader.get_data()
    finally:
        loader.dispose()


def _fault(problem: str, node: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
