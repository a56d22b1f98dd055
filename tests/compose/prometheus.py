"""Questions to a Prometheus over HTTP, and the expressions of the dashboard."""

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

PROMETHEUS = "http://localhost:9090"
ANSWER_LIMIT_SECONDS = 10.0


def ask(expression: str) -> list[dict[str, Any]]:
    """Return the rows of an expression's answer; fail if Prometheus cannot evaluate it."""
    url = f"{PROMETHEUS}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_LIMIT_SECONDS) as answer:  # noqa: S310  # http, as PROMETHEUS says
            content = json.load(answer)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"Prometheus refused {expression}: {error.read().decode(errors='replace')}") from error
    assert content["status"] == "success", f"{expression}: {content}"
    rows: list[dict[str, Any]] = content["data"]["result"]
    return rows


def values(expression: str) -> list[float]:
    """Return the numbers of an expression's answer; none if Prometheus does not answer yet."""
    try:
        return [float(row["value"][1]) for row in ask(expression)]
    except OSError:
        return []


def dashboard_expressions(project: Path) -> list[str]:
    """Return the expressions of the dashboard, with the interval that Grafana would fill in."""
    dashboard = json.loads((project / "deploy" / "grafana" / "dashboards" / "bmq.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [expression.replace("$__rate_interval", "1m") for expression in found]
