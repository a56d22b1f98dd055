"""What all sections of the configuration share."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One table of the file: frozen, and every name in it must be known."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
