"""`bmq query import`, `apply` and `export` on a real broker, as users type them."""

import json
from pathlib import Path

import numpy as np
import pyogrio.raw
import pytest
import shapely
from typer.testing import CliRunner, Result

from bmq.cli import app
from bmq.client import Client
from tests.kafka.pure_responder import Place

pytestmark = pytest.mark.kafka

FORTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}
FIFTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [50, 60]}}}
WRONG = {"kind": "border", "feed": "stocks", "region": {"box": {"cost": [50, 60]}}}
POLYGON = {"type": "Polygon", "coordinates": [[[13.0, 52.0], [13.5, 52.0], [13.5, 52.5], [13.0, 52.0]]]}
POINT = {"type": "Point", "coordinates": [13.0, 52.0]}


@pytest.fixture
def config(place: Place, tmp_path: Path) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(
        place.config_text(feed_options="")
        + """
        [feeds.areas]
        topic = "areas"
        stream_id = "id"
        dimensions = ["lon", "lat"]
        space = "lonlat"
        [feeds.plane]
        topic = "plane"
        stream_id = "id"
        dimensions = ["x", "y"]
        """
    )
    return path


def bmq(config: Path, *arguments: str, stdin: object = None) -> Result:
    written = None if stdin is None else json.dumps(stdin)
    return CliRunner().invoke(app, ["query", *arguments, "--config", str(config)], input=written)


def listed(config: Path) -> dict[str, object]:
    lines = bmq(config, "list", "--json").stdout.splitlines()
    return {one["query_id"]: one["definition"] for one in map(json.loads, lines)}


def collection(*geometries: object) -> dict[str, object]:
    features = [
        {"type": "Feature", "id": f"f{k}", "properties": {"name": f"n{k}"}, "geometry": geometry}
        for k, geometry in enumerate(geometries)
    ]
    return {"type": "FeatureCollection", "crs": None, "features": features}


def test_import_publishes_the_features_that_the_service_accepts_and_names_the_others(config: Path) -> None:
    options = ("import", "-", "--feed", "areas", "--tag", "name", "--stay-for", "30s", "--no-wait")

    result = bmq(config, *options, stdin=collection(POLYGON, POINT, POLYGON))

    assert result.stdout == "published: f0, control offset 0\npublished: f2, control offset 1\n"
    first, last = result.stderr.splitlines()
    assert first.startswith("-: feature 2 'f1' at [13.0, 52.0]: bad_region: Field 'region.geojson.type' is \"Point\"")
    assert last == "bmq: 1 of 3 features were refused; see above. The other 2 are published."
    assert result.exit_code == 1
    definition = {"kind": "border", "feed": "areas", "region": {"geojson": POLYGON}, "stay_for": "30s"}
    assert listed(config) == {f: definition | {"tags": {"name": f.replace("f", "n")}} for f in ("f0", "f2")}


@pytest.mark.parametrize("option", ["--dry-run", "--all-or-nothing"])
def test_import_can_publish_nothing(config: Path, option: str) -> None:
    result = bmq(config, "import", "-", "--feed", "areas", option, stdin=collection(POLYGON, POINT))

    assert result.exit_code == 1
    assert "feature 2 'f1'" in result.stderr
    assert result.stdout == ("would put: f0\n" if option == "--dry-run" else "")
    assert listed(config) == {}


def test_import_reprojects_to_the_globe_and_leaves_a_plane_as_it_is(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "zones.gpkg"
    square = shapely.box(500_000, 5_538_630, 500_100, 5_538_730)
    pyogrio.raw.write(
        path,
        np.array([shapely.to_wkb(square)], dtype=object),
        field_data=[],
        fields=[],
        layer="zones",
        geometry_type="Polygon",
        crs="EPSG:25832",
    )

    for feed, prefix, options in (("areas", "a/", ()), ("plane", "p/", ()), ("plane", "w/", ("--crs", "EPSG:4326"))):
        result = bmq(config, "import", str(path), "--feed", feed, "--id-prefix", prefix, "--no-wait", *options)
        assert result.exit_code == 0, result.output

    west_by_id = {
        query_id: shapely.geometry.shape(definition["region"]["geojson"]).bounds[0]  # type: ignore[index]
        for query_id, definition in listed(config).items()
    }
    assert west_by_id == {"a/zones-1": pytest.approx(9.0), "p/zones-1": 500_000, "w/zones-1": pytest.approx(9.0)}
    refused = bmq(config, "import", str(path), "--feed", "areas", "--crs", "EPSG:25832")
    assert refused.exit_code == 2
    assert "--file-crs" in refused.stderr


@pytest.mark.usefixtures("service")
def test_apply_puts_what_differs_shows_it_before_and_deletes_only_what_has_the_prefix(
    config: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "many.yaml").write_text(json.dumps({"s/forties": FORTIES, "s/fifties": FIFTIES}))
    for query_id in ("s/old", "of-others"):
        bmq(config, "put", query_id, "-", stdin=FORTIES)
    bmq(config, "put", "s/forties", "-", stdin=FIFTIES)

    shown = bmq(config, "apply", str(folder), "--dry-run", "--prune", "s/")
    kept = bmq(config, "apply", str(folder))
    pruned = bmq(config, "apply", str(folder), "--prune", "s/")
    again = bmq(config, "apply", str(folder), "--prune", "s/", "--dry-run")

    assert shown.exit_code == 3
    lines = shown.stdout.splitlines()
    assert [line for line in lines if line.startswith(("---", "+++"))] == [
        "--- registered/s/old",
        "+++ /dev/null",
        "--- /dev/null",
        "+++ desired/s/fifties",
        "--- registered/s/forties",
        "+++ desired/s/forties",
    ]
    assert '-      "price": [50, 60]' in lines
    assert shown.stderr == "create 1, replace 1, repeat 0, delete 1, keep 0\n"
    assert (kept.exit_code, kept.stdout) == (0, "accepted: s/fifties, version 4\naccepted: s/forties, version 5\n")
    assert (pruned.exit_code, pruned.stdout) == (0, "deleted: s/old, version 6\n")
    assert (again.exit_code, again.stdout) == (0, "")
    assert listed(config) == {"s/forties": FORTIES, "s/fifties": FIFTIES, "of-others": FORTIES}


def test_apply_publishes_nothing_if_one_definition_would_be_rejected(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"good": FORTIES, "bad": WRONG}))

    result = bmq(config, "apply", str(path))

    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{path}: bad: unknown_dimension: " in result.stderr
    assert "The service would reject 1 of 2 definitions; see above. Nothing was published." in result.stderr
    assert listed(config) == {}


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("name", ["state.json", "state.yaml"])
def test_what_is_exported_is_the_desired_state(config: Path, tmp_path: Path, place: Place, name: str) -> None:
    for query_id, definition in (("forties", FORTIES), ("fifties", FIFTIES)):
        bmq(config, "put", query_id, "-", stdin=definition)
    with Client(place.servers, topics=place.topics) as client:
        client.put("wrong", WRONG)

    exported = bmq(config, "export", str(tmp_path / name))
    applied = bmq(config, "apply", str(tmp_path / name), "--dry-run")

    assert exported.exit_code == 0, exported.output
    assert "left out: wrong, which is rejected" in exported.stderr
    assert (applied.exit_code, applied.stdout) == (0, "")
    assert applied.stderr == "create 0, replace 0, repeat 0, delete 0, keep 2\n"
    printed = bmq(config, "export", "--prefix", "fo").stdout
    assert json.loads(printed) == {"forties": FORTIES}


@pytest.mark.usefixtures("service")
def test_put_many_deletes_too_and_reports_each_reply(place: Place) -> None:
    seen: list[str] = []
    with Client(place.servers, topics=place.topics) as client:
        client.put_many({"a": FORTIES, "b": FORTIES})
        replies = client.put_many({"a": None, "b": FIFTIES, "c": WRONG}, 60, lambda reply: seen.append(reply.query_id))

    assert {query_id: reply.status for query_id, reply in replies.items()} == {
        "a": "deleted",
        "b": "accepted",
        "c": "rejected",
    }
    assert sorted(seen) == ["a", "b", "c"]
