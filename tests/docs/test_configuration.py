"""docs/configuration.md says what the models say."""

import re
from pathlib import Path

import pytest

from bmq.config import load_config
from bmq.config.reference import reference

ROOT = Path(__file__).parents[2]


def test_the_document_is_what_the_models_say() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()

    assert written == reference(), "stale: run `make reference`"


def test_every_option_is_explained() -> None:
    rows = re.findall(r"^\| `\w+` \|.*$", reference(), re.MULTILINE)

    assert len(rows) > 25
    assert [row for row in rows if len(row.split(" | ")[-1]) < 10] == []


def test_the_examples_of_kafka_options_mean_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toml, shell = re.findall(r"```(?:toml|sh)\n(.*?)```", reference(), re.DOTALL)
    feed = '[feeds.line]\ntopic = "line"\nstream_id = "id"\ndimensions = ["x"]\n'
    path = tmp_path / "bmq.toml"

    for example in toml.splitlines()[1:]:
        path.write_text(f"{feed}[kafka.options]\n{example}")
        assert load_config(path).kafka.options == {"security.protocol": "SASL_SSL"}
    path.write_text(feed)
    for variable, text in re.findall(r"^(\w+)=('.*'|\S+)", shell, re.MULTILINE):
        with monkeypatch.context() as patch:
            patch.setenv(variable, text.strip("'"))
            assert load_config(path).kafka.options == {"security.protocol": "SASL_SSL"}
