"""Scenarios against other systems: what passes, what is wrong, what cannot be expressed, and the command."""

import json
from collections.abc import Sequence, Set
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bmq.cli import app
from bmq.conformance.adapter import SystemFailed, find_adapter
from bmq.conformance.event_text import Lack, comparable
from bmq.conformance.local_adapter import LocalAdapter
from bmq.conformance.scenario import Json, Scenario, parse
from bmq.conformance.verdicts import Result as Came
from bmq.conformance.verdicts import Verdict, judge, load_scenarios, sums
from bmq.errors import ConfigError

pytestmark = pytest.mark.unit

FOLDER = Path(__file__).parents[2] / "scenarios"
GIVEN = FOLDER / "given.jsonl"
HERE = "tests.unit.conformance.test_adapters"
BOX = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}
THROUGH: list[Json] = [{"put": {"q": BOX}}, {"feed": "line", "read": [["a", 1, 20], ["a", 2, 5], ["a", 3, 20]]}]


class Forgetful(LocalAdapter):
    """The engine, if it reported no stream that left."""

    def events(self) -> list[Json]:
        return [event for event in super().events() if event.get("sign") != "-"]


class Unreasoned(LocalAdapter):
    """The engine, if it gave no reasons and no codes."""

    lacks: frozenset[Lack] = frozenset(Lack)

    def put(self, query_id: str, definition: bytes) -> str:
        return super().put(query_id, definition).partition(":")[0]

    def send(self, feed: str, values: Sequence[bytes]) -> list[str]:
        return ["refused"] * len(super().send(feed, values))

    def events(self) -> list[Json]:
        return [{name: value for name, value in event.items() if name != "reason"} for event in super().events()]


class Ended(LocalAdapter):
    """A system that ends after its start."""

    def events(self) -> list[Json]:
        raise SystemFailed("It is gone. Start it.")


def scenario(*steps: Json) -> Scenario:
    return parse(json.dumps({"name": "n", "rule": "r", "steps": steps}), "")


def verdict(adapter: LocalAdapter, *steps: Json) -> Verdict:
    (found,) = judge([scenario(*steps)], adapter)
    return found


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["conformance", *arguments])


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    return list(judge(load_scenarios(GIVEN), find_adapter("bmq", None)))


def test_the_engine_gets_nothing_wrong_and_cannot_restart(verdicts: list[Verdict]) -> None:
    assert [one for one in verdicts if one.result is Came.WRONG] == []
    cannot = {one.name for one in verdicts if one.result is Came.CANNOT}
    assert cannot == {one.name for one in load_scenarios(GIVEN) if one.rule == "restart"} != set()
    assert sums(verdicts) == {Came.PASSED: 78, Came.WRONG: 0, Came.CANNOT: 2}


def test_wrong_expectations_are_found_wrong() -> None:
    lines = (FOLDER / "wrong.jsonl").read_text(encoding="utf-8").splitlines()
    scenarios = [one for line in lines if line and not (one := parse(line, "")).broken]
    found = list(judge(scenarios, LocalAdapter(None)))
    assert len(found) > 10
    assert [one.name for one in found if one.result is Came.PASSED] == []


def test_a_missing_event_is_wrong_and_the_details_name_it() -> None:
    found = verdict(Forgetful(None), *THROUGH, {"expect": ["+q a@2 moved", "-q a@3 moved"]})
    assert found.result is Came.WRONG
    assert found.details == ("step 3: of a came ['+q a@2 moved'], expected ['+q a@2 moved', '-q a@3 moved']",)


@pytest.mark.parametrize(("adapter", "result"), [(LocalAdapter, Came.WRONG), (Unreasoned, Came.PASSED)])
def test_what_a_system_lacks_is_not_compared(adapter: type[LocalAdapter], result: Came) -> None:
    bad = BOX | {"region": {"box": {"x": [10, 0]}}}
    found = verdict(
        adapter(None),
        *THROUGH,
        {"expect": ["+q a@2 first_seen", "-q a@3 query_deleted"]},
        {"put": {"p": bad}, "reply": "rejected:not_json"},
        {"raw": ["{"]},
        {"dead": {"too_large": 1}},
    )
    assert found.result is result
    assert len(found.details) == (3 if result is Came.WRONG else 0)


def test_sign_query_stream_time_and_refusals_are_always_compared() -> None:
    expected = {"expect": ["+q a@2 moved", "-q a@4 moved"]}
    dead, refused = {"dead": {"not_json": 1}}, {"put": {"p": BOX}, "reply": "rejected:bad_region"}
    for steps in ([expected], [{"expect": ["+q a@2 moved", "-q a@3 moved"]}, dead], [refused]):
        assert verdict(Unreasoned(None), *THROUGH, *steps).result is Came.WRONG


@pytest.mark.parametrize(
    ("text", "lacks", "left"),
    [
        ("+q a@2 moved pass", {Lack.REASON}, "+q a@2 pass"),
        ("+q a@2 moved", {Lack.CODE}, "+q a@2 moved"),
        ("in_then_out q a@1..3", {Lack.REASON}, "in_then_out q a@1..3"),
        ("-q a~z@3", {Lack.REASON}, "-q a~z@3"),
    ],
)
def test_only_the_reason_of_a_border_event_is_left_out(text: str, lacks: Set[Lack], left: str) -> None:
    assert comparable(text, lacks) == left


def test_an_attribute_of_several_types_is_no_column() -> None:
    reads = [["a", 1, 5, {"group": "g"}], ["b", 1, 5, {"group": 1}]]
    assert verdict(LocalAdapter(None), {"feed": "line", "read": reads}).result is Came.CANNOT
    assert verdict(LocalAdapter(None), {"feed": "line", "read": reads[:1]}, {"expect": []}).result is Came.PASSED


def test_the_command_shows_a_line_for_each_scenario_and_the_sums(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    lines = [
        {"name": n, "rule": "r", "steps": [*THROUGH, {"expect": texts}]} for n, texts in (("good", None), ("no", []))
    ]
    lines[0]["steps"] = [*THROUGH, {"expect": ["+q a@2 moved", "-q a@3 moved"]}]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    shown = command(str(file), "--adapter", "bmq")
    assert shown.exit_code == 1
    first, second, detail, last = shown.stdout.splitlines()
    assert (first, second) == ("passed  good", "wrong   no")
    assert "of a came ['+q a@2 moved', '-q a@3 moved'], expected []" in detail
    assert last == "1 passed, 1 wrong, 0 cannot be expressed"

    as_json = command(str(file), "--adapter", "bmq", "--json")
    assert as_json.exit_code == 1
    found = json.loads(as_json.stdout)
    assert (found["passed"], found["wrong"], found["cannot"]) == (1, 1, 0)
    assert found["scenarios"][0] == {"name": "good", "rule": "r", "result": "passed", "details": []}


def test_what_cannot_be_expressed_is_no_failure(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text(json.dumps({"name": "n", "rule": "r", "steps": [{"restart": "kill"}]}), encoding="utf-8")
    shown = command(str(file), "--adapter", "bmq")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[1:] == [
        "        a bmq.Monitor lives in its process and has no checkpoint to start from",
        "0 passed, 0 wrong, 1 cannot be expressed",
    ]


def test_an_adapter_of_the_user_is_named_by_module_and_class() -> None:
    assert isinstance(find_adapter(f"{HERE}:Unreasoned", None), LocalAdapter)
    ended = command(str(GIVEN), "--adapter", f"{HERE}:Ended")
    assert ended.exit_code == 1
    assert "It is gone. Start it." in ended.output


@pytest.mark.parametrize("name", ["tile3", f"{HERE}:Nobody", "no_such_module:Adapter"])
def test_an_adapter_that_is_not_there_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        find_adapter(name, None)


def test_the_engine_refuses_a_server() -> None:
    with pytest.raises(ConfigError, match=r"'here'.*Leave the option out"):
        find_adapter("bmq", "here")


def test_tile38_is_refused_without_its_program() -> None:
    with pytest.raises(ConfigError, match=r"no-such-program is not there.*--server PATH"):
        find_adapter("tile38", "no-such-program")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("\n", "no scenario"),
        ('\n{"name": "n", "rule": "r", "steps": [{"wait": 5}]}', "line 2.*unknown step.*correct the line"),
        ("{", "line 1"),
    ],
)
def test_a_file_that_is_no_scenarios_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "file.jsonl"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_scenarios(file)
    assert command(str(file), "--adapter", "bmq").exit_code == 2
