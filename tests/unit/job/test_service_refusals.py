"""Options that do not go together with how the service was started."""

import pytest

from bmq.config import Config
from bmq.errors import ConfigError
from bmq.job.service import Service

pytestmark = pytest.mark.unit


def test_workers_are_refused_under_spark_submit_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    feed = {"topic": "line", "stream_id": "id", "dimensions": ["x"]}
    config = Config(feeds={"line": feed}, job={"workers": 3}, metrics={"port": 0})

    with pytest.raises(ConfigError, match=r"job\.workers is 3.*--executor-cores"):
        Service(config, "127.0.0.1:1").start()
