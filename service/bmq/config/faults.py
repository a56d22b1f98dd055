"""The faults of a configuration in words: the option, the value, the rule, the way out.

Knows pydantic's errors and the names of the options; decides nothing.
"""

import json
import os
import re
import types
import typing
from collections.abc import Iterable, Mapping

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from bmq.wire.fault_texts import nearest

ENVIRONMENT_PREFIX = "BMQ_"

# Rules for errors whose message in pydantic mentions Python types.
_RULES = {
    "too_short": "name at least one",
    "string_too_short": "must not be empty; name one or leave the option out",
    "tuple_type": 'write a list, such as ["x", "y"]',
    "model_type": "write a table with the options of this section",
    "dict_type": "write a table",
}

_SECRET = re.compile(r"password|secret|jaas|token|ssl\.key\.pem", re.IGNORECASE)
_USER_IN_URL = re.compile(r"://[^/\s]*@")  # with a password, perhaps
Location = tuple[int | str, ...]


def is_secret(name: str) -> bool:
    """Return whether the value of a Kafka option is a secret, which no message may show."""
    return _SECRET.search(name) is not None


def describe(error: ErrorDetails, model: type[BaseModel]) -> str:
    """Return one error of pydantic as one line; its location starts at ``model``."""
    location = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            return unknown_option(location, names_at(model, location[:-1]))
        case "missing":
            return f"{dotted(location)} is missing; set it or {variable_of(location)}"
        case "value_error":
            rule = str(error["ctx"]["error"])
        case kind:
            rule = _RULES.get(kind, error["msg"].replace("Input should be", "must be"))
    return f"{dotted(location)}{_equals(location, error['input'])}: {rule}"


def unknown_option(location: Location, known: Iterable[str]) -> str:
    """Return the fault of an option that does not exist, with the nearest known option."""
    names = sorted(known)
    near = nearest(str(location[-1]), names)
    way_out = f'did you mean "{near}"?' if near else f"known here: {', '.join(names)}"
    return f"{dotted(location)}: there is no such option; {way_out}"


def unknown_variables(environment: Mapping[str, str], sections: Iterable[str]) -> list[str]:
    """Return a fault for each variable that looks like an option of a section that does not exist.

    Names without `__`, such as BMQ_TEST_BOOTSTRAP, are not options and are ignored.
    """
    known = sorted(sections)
    faults = []
    for name in sorted(environment):
        section, separator, _ = name.upper().removeprefix(ENVIRONMENT_PREFIX).partition("__")
        if not (name.upper().startswith(ENVIRONMENT_PREFIX) and separator) or section.lower() in known:
            continue
        near = nearest(section, known)
        way_out = f"did you mean {ENVIRONMENT_PREFIX}{near.upper()}__…?" if near else "unset it"
        faults.append(f"environment variable {name}: there is no section {section.lower()!r}; {way_out}")
    return faults


def names_at(model: type[BaseModel], location: Location) -> list[str]:
    """Return the names of the options at ``location``: the fields of the model at that place."""
    for step in location:
        field = model.model_fields.get(str(step))
        # A step without a field is the name of a feed, which the user chooses: the options are those of this model.
        if field is not None:
            model = _inner_model(field.annotation) or model
    return list(model.model_fields)


def _inner_model(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    return next((model for part in typing.get_args(annotation) if (model := _inner_model(part))), None)


def dotted(location: Location) -> str:
    """Return a location in the notation of the file, with its environment variable if that is set."""
    steps = [str(step) for step in location if step != "[key]"]
    variable = variable_of(location)
    return ".".join(steps) + (f" (from {variable})" if variable in os.environ else "")


def variable_of(location: Location) -> str:
    """Return the environment variable that sets the option at ``location``."""
    return ENVIRONMENT_PREFIX + "__".join(str(step) for step in location).upper()


def _equals(location: Location, value: object) -> str:
    """Return ` = value` in TOML's notation; "" for a table, which is long and may contain a secret."""
    if isinstance(value, Mapping):
        return ""
    if is_secret(str(location[-1])) or (isinstance(value, str) and _USER_IN_URL.search(value)):
        return " = ***"
    return f" = {json.dumps(value, ensure_ascii=False, default=str)}"
