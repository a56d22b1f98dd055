"""The section `registry`: where the schemas of Avro records are."""

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from bmq.config.option_types import Section


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port
        is_url = False
    if not is_url or parts.query or parts.fragment:
        raise ValueError("write http://host:port or https://host:port, and a path if the registry is below one")
    return text


def _without_user(text: str) -> str:
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise ValueError("the address has a user or a password; set registry.user and registry.password instead")
    return text


class RegistrySection(Section):
    """The schema registry that has the schemas of `avro` feeds without a `schema_file`."""

    url: Annotated[str, AfterValidator(_without_user), AfterValidator(_url)] | None = None
    """The address of its REST interface, that of Confluent's registry or one that is compatible, such as
    `http://localhost:8081`. Absent: no feed may use a registry."""
    user: str = Field("", pattern=r"^[^:]*$")
    """The user of basic authentication; empty: none."""
    password: str = Field("", repr=False)
    """The password of the user. Better in the environment: `BMQ_REGISTRY__PASSWORD`."""
    ca_file: str = ""
    """File of certificates in PEM, with which that of the registry is checked; empty: those of the machine. On a
    cluster each executor needs it at the same place."""

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        if bool(self.user) != bool(self.password):
            missing, given = ("user", "password") if self.password else ("password", "user")
            raise ValueError(f"{given} needs {missing}, too; set both, or leave both out")
        if self.url is None and (self.user or self.ca_file):
            raise ValueError("user, password and ca_file need url; set it, or leave them out")
        if self.ca_file and not Path(self.ca_file).is_file():
            raise ValueError(f"ca_file = {self.ca_file!r} is no file; name one with certificates in PEM")
        return self
