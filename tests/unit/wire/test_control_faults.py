"""The control topic: how each fault of a border or transition query is refused, and in which order."""

from typing import Any

import pytest

from tests.definitions import accepted, border, box, refused, transition


@pytest.mark.parametrize(
    ("value", "code", "part"),
    [
        (b"", "not_json", "no JSON object: it is empty"),
        (b" \n", "not_json", "it is empty"),
        (b"\xef\xbb\xbf", "not_json", "it is empty"),
        (b"\0\0\0\0\x07{}", "not_json", "behind the five bytes of a schema registry (0x00 and the schema id 7)"),
        (b"{", "not_json", "no JSON object"),
        (b"\xff", "not_json", "UTF-8"),
        (b'{"a": "\\ud800"}', "not_json", "UTF-8"),
        (b"[" * 100_000, "not_json", "nested too deeply"),
        (b"[1]", "not_json", "[1] is no object"),
        (b'{"kind": "border", "kind": "border"}', "not_json", '"kind" stands twice'),
        (b'{"kind": NaN}', "not_json", "NaN is no JSON number"),
        (border(kind=...), "missing_field", "'kind'"),
        (border(kind=None), "missing_field", "'kind'"),
        (border(kind=3), "wrong_type", "'kind' is 3"),
        (
            border(kind="boarder"),
            "unknown_kind",
            'Write "kind": "border", "transition", "match", "select", "band_join" or',
        ),
        (border(regoin=1), "unknown_field", "'region'"),
        (
            border(region={"bxo": {}}),
            "unknown_field",
            "'region.bxo' is not known. Did you mean 'box'?",
        ),
        (border(feed=...), "missing_field", "'feed'"),
        (border(feed=None), "missing_field", "'feed'"),
        (border(region={}), "bad_region", "no shape"),
        (border(feed=7), "wrong_type", "'feed' is 7"),
        (border(region=[0, 10]), "wrong_type", "'region' is [0, 10]"),
        (border(region={"box": [0, 10]}), "wrong_type", "'region.box'"),
        (border(region={"circle": {"centre": [0, 0]}}), "unknown_field", "Did you mean 'center'?"),
        (border(exit_region={"bx": {}}), "unknown_field", "'exit_region.bx' is not known"),
        (transition(patern=1), "unknown_field", "Did you mean 'pattern'?"),
        (transition(pattern=None), "missing_field", "'pattern' is missing, but a transition query needs it"),
        ({**transition(), "within": None}, "missing_field", "'within'"),
        (border(region={"circle": {"center": [0, 0]}}), "missing_field", "'region.circle.radius'"),
        (border(ttl=[1]), "wrong_type", "'ttl' is [1], but must be a string"),
        (border(ttl=True), "wrong_type", "'ttl' is true"),
        (border(expires_at=[1]), "wrong_type", "'expires_at' is [1], but must be epoch milliseconds or"),
        (border(expires_at=False), "wrong_type", "'expires_at' is false"),
        (border(enabled="no"), "wrong_type", "'enabled' is \"no\", but must be true or false"),
        (border(passes=1), "wrong_type", "'passes' is 1"),
        (border(max_events=1.5), "wrong_type", "'max_events' is 1.5, but must be a whole number"),
        (border(max_events=True), "wrong_type", "'max_events' is true"),
        (border(where=["group"]), "wrong_type", "'where' is [\"group\"], but must be an object"),
        (border(where={"group": {}}), "wrong_type", "'where.group' is {}, but must be a string, a number"),
        (border(where={"group": [["a"]]}), "wrong_type", "'where.group' is"),
        (border(region={"polygon": 3}), "wrong_type", "'region.polygon' is 3"),
        (
            border(region={"polygon": [["a", 0]]}),
            "wrong_type",
            "'region.polygon[0][0]' is \"a\", but must be a number.",
        ),
        (border(ttl=60), "bad_duration", "'ttl' is 60, but a duration is a whole number with ms, s, m, h or d"),
        (border(ttl="2 h"), "bad_duration", "'ttl' is \"2 h\""),
        (border(stay_for="-5s"), "bad_duration", "'stay_for' is \"-5s\""),
        (border(away_for="1.5h"), "bad_duration", 'write it like "90s"'),
        (border(cooldown="٣s"), "bad_duration", "'cooldown'"),
        (border(cooldown=""), "bad_duration", "'cooldown' is \"\""),
        (border(stream_ttl="0s"), "bad_duration", "above zero"),
        (border(ttl="0ms"), "bad_duration", "above zero"),
        (border(ttl="3652060d"), "bad_duration", "at most 3652059d"),
        (border(ttl="9" * 5000 + "s"), "bad_duration", "at most"),
        (transition(within="0s"), "bad_duration", "'within' is \"0s\""),
        (transition(within=3), "bad_duration", "'within' is 3"),
        (
            border(region={"box": {"x": [0, 1]}, "circle": {"center": [0, 0], "radius": 1}}),
            "bad_region",
            "box and circle",
        ),
        (border(exit_region={}), "bad_region", "'exit_region' has no shape"),
        (border(region={"polygon": [[0, 0, 0]]}), "bad_region", "a point is [x, y]"),
        (border(region={"polygon": []}), "bad_region", "'region.polygon'"),
        (border(exit_region={"polygon": []}), "bad_region", "'exit_region.polygon'"),
        (border(region={"circle": {"center": [0, 0], "radius": 0}}), "bad_region", "'region.circle.radius'"),
        (border(feed="stocks", region={"circle": {"center": [0, 0], "radius": 1}}), "bad_region", "two dimensions"),
        (border(exit_region={"box": {"x": [1, 11], "y": [0, 10]}}), "bad_region", "does not hold all of 'region'"),
        (border(exit_region={"box": {"z": [0, 1]}}), "unknown_dimension", "Known here: 'x', 'y'."),
        (border(colour=1), "unknown_field", "'colour' is not known. Known here: 'away_for', 'bounds', 'cooldown',"),
        (border(region={"polygon": [[0, 0], [1, 0], [0, 1]]}, bounds="[]"), "bad_option", "only a box"),
        (border(bounds="()", exit_region={"circle": {"center": [5, 5], "radius": 9}}), "bad_option", "only a box"),
        (border(ttl="1h", expires_at=5), "bad_option", "both say when the query ends"),
        (border(expires_at="tomorrow"), "bad_option", "'expires_at' is \"tomorrow\": write 2023-11-14T22:13:20.250Z"),
        (border(expires_at=10**400), "bad_option", "'expires_at'"),
        (border(expires_at=10**18), "bad_option", "years 1 to 9999"),
        (border(expires_at=1_700_003_600), "bad_option", "below 10^11 is probably seconds. Multiply it by 1000"),
        (border(expires_at=-1_700_003_600_000), "bad_option", "below 10^11"),
        (border(expires_at=99_999_999_999.5), "bad_option", "below 10^11"),
        (border(max_events=0), "bad_option", "'max_events' is 0, but must be 1 to"),
        (border(max_events=2**31), "bad_option", "but must be 1 to 2147483647"),
        (border(where={"grup": "a"}), "bad_option", "Did you mean 'group'?"),
        (
            border(feed="stocks", region={"box": {"price": [0, 1]}}, where={"a": 1}),
            "bad_option",
            "None is known here. If",
        ),
        (border(where={"group": []}), "bad_option", "'where.group' is [], which no reading fits"),
        (border(where={"group": 10**400}), "bad_option", "finite"),
        (border(passes=True, stay_for="1s"), "bad_option", "'stay_for'"),
        (border(passes=True, away_for="1s"), "bad_option", "'away_for'"),
        (border(passes=True, exit_region={"box": {"x": [None, None]}}), "bad_option", "'exit_region'"),
        (border(passes=True, feed="cube"), "bad_option", "has 3 dimensions"),
        (border(pattern="in_then_out"), "bad_option", "'pattern' does not apply to kind 'border'"),
        (transition(pattern="in_then"), "bad_option", "'in_then_out', 'out_then_in', 'in_not_out' or 'out_not_in'"),
        (box(x=3), "wrong_type", "'region.box.x' is 3"),
        (box(x=["0", 10]), "wrong_type", "'region.box.x[0]' is \"0\""),
        (box(x=[True, 10]), "wrong_type", "'region.box.x[0]' is true"),
        (border(streams="a"), "wrong_type", "'streams' is \"a\""),
        (border(streams=["a", 1]), "wrong_type", "'streams[1]' is 1"),
        (border(bounds=3), "wrong_type", "'bounds' is 3"),
        (border(output_topic=3), "wrong_type", "'output_topic' is 3"),
        (border(tags=[]), "wrong_type", "'tags' is []"),
        (border(tags={"a": None}), "wrong_type", "'tags.a' is null"),
        (border(tags={"a": [1]}), "wrong_type", "'tags.a' is [1]"),
        (border(feed="vehicle"), "unknown_feed", "'vehicles'"),
        (box(X=[0, 10]), "unknown_dimension", "'x'"),
        (box(), "bad_region", "at least one dimension"),
        (box(x=[1]), "bad_region", "[lo, hi]"),
        (box(x=[1, 2, 3]), "bad_region", "[lo, hi]"),
        (box(x=[10, 0]), "bad_region", "10.0 of 'x' is above upper border 0.0"),
        (box(x=[10**400, None]), "bad_region", "beyond the range"),
        (border(streams=[]), "bad_option", "watches nothing"),
        (border(bounds="[["), "bad_option", "'[)', '[]', '(]' or '()'"),
        (border(initial="loud"), "bad_option", "'emit' or 'silent'"),
        (border(output_topic="mine"), "bad_option", "begin with 'bmq.'"),
        (border(output_topic="bmq.a b"), "bad_option", "letters"),
        (border(output_topic="bmq.control"), "bad_option", "the service itself uses"),
        (border(output_topic="bmq.dead_letter"), "bad_option", "the service itself uses"),
        (border(output_topic="bmq.vehicles"), "bad_option", "the service itself uses"),
        (border(tags={"a": 10**400}), "bad_option", "finite"),
        (border(tags={"a": "x" * 20_000}), "bad_option", "16384 are the most"),
        (border(output_topic="__consumer_offsets"), "bad_option", "begin with"),
    ],
)
def test_a_fault_is_refused_with_its_code_and_named(value: dict[str, Any] | bytes, code: str, part: str) -> None:
    answer = refused(value)
    assert (answer.query_id, answer.code) == ("q1", code)
    assert part in answer.message


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"9" * 5000])
def test_a_border_beyond_the_range_of_a_float_is_a_bad_region(number: bytes) -> None:
    value = b'{"kind": "border", "feed": "vehicles", "region": {"box": {"x": [%s, null]}}}' % number
    assert refused(value).code == "bad_region"


@pytest.mark.parametrize(
    "option",
    ["initial", "passes", "stream_ttl", "exit_region", "stay_for", "away_for", "cooldown", "max_events"],
)
def test_an_option_of_border_queries_does_not_apply_to_transitions_unless_it_is_null(option: str) -> None:
    answer = refused(transition(**{option: "silent"}))
    assert (answer.code, answer.message) == (
        "bad_option",
        f"Field '{option}' does not apply to kind 'transition'. Leave it out.",
    )
    assert accepted(transition(**{option: None})) == accepted(transition())


def test_geojson_that_is_nested_without_end_is_refused() -> None:
    nested = b'{"kind": "border", "feed": "vehicles", "region": {"geojson": {"type": "Polygon", "coordinates": '
    for depth in (300, 900, 950):
        assert refused(nested + b"[" * depth + b"]" * depth + b"}}}").code in ("bad_region", "wrong_type", "not_json")


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (border(kind="bordr", regoin=1), "unknown_kind"),
        (border(regoin=1, region=..., bounds="["), "unknown_field"),
        (border(bounds="[", feed=..., streams=3), "wrong_type"),
        (border(regoin=1, region=3), "wrong_type"),
        (border(bounds="[", feed=...), "bad_option"),
        (border(feed=..., region=3), "wrong_type"),
        (border(feed=..., region={"box": {}}), "missing_field"),
        (border(streams=3, region={"box": {}}), "wrong_type"),
        (border(region={"box": {}}, feed="nope"), "bad_region"),
        (border(streams=3, ttl="2"), "wrong_type"),
        (border(ttl="2", region={"box": {}}), "bad_duration"),
        (border(ttl="2", region={}), "bad_duration"),
        (border(region={}, ttl="2h", expires_at=3), "bad_region"),
        (border(ttl="2h", expires_at=3, feed="nope"), "bad_option"),
        (border(exit_region={"box": {"q": [0, 1]}}, region={"box": {"x": [1, 0]}}), "unknown_dimension"),
        (border(where={"a": 1}, region={"box": {"x": [1, 0]}}), "bad_region"),
        (border(feed="nope", region={"box": {"z": [10, 0]}}), "unknown_feed"),
        (box(x=[10, 0], z=[0, 10]), "unknown_dimension"),
        (border(region={"box": {"x": [10, 0]}}, output_topic="mine"), "bad_region"),
    ],
)
def test_of_several_faults_the_first_in_the_documented_order_is_shown(definition: dict[str, Any], code: str) -> None:
    assert refused(definition).code == code
