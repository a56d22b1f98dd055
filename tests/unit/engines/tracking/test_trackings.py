"""Trackings, rule by rule: the examples a person would ask about."""

from typing import Any

import numpy as np

from bmq.engines.tracking.trackings import (
    AT_QUERY_EXPIRY,
    AT_READING,
    AT_STREAM_EXPIRY,
    EMITTED,
    END,
    FIRED,
    IN,
    OUT,
    SILENT,
    TrackingEvents,
    TrackingItems,
    Trackings,
)
from bmq.kernels.tables.hashing import hash_ids
from bmq.records import NEVER, Ids, Int32s, Kind, Pattern, Reason, Region, RegionQuery

REGION = Region((0.0,), (10.0,))
NEVER_SETTLED = -(2**62)


def tracking(**options: Any) -> Trackings:
    """One query, slot 0."""
    pairs = Trackings(1)
    pairs.set_options(0, query(**options))
    return pairs


def query(**options: Any) -> RegionQuery:
    return RegionQuery("q", 1, "f", REGION, **options)


def crossing(time: int, action: int, stream: int = 0, **facts: Any) -> dict[str, Any]:
    return {"stream": stream, "time": time, "action": action, **facts}


def play(
    pairs: Trackings, *crossings: dict[str, Any], settled: int = NEVER_SETTLED, last_times: Any = None, lags: Any = None
) -> TrackingEvents:
    def column(name: str, dtype: str, default: Any = 0) -> Any:
        return np.array([one.get(name, default) for one in crossings], dtype=dtype)

    return pairs.run(
        TrackingItems(
            queries=column("query", "i4"),
            streams=column("stream", "i4"),
            moments=column("time", "i8"),
            classes=column("class_", "i1", AT_READING),
            actions=column("action", "i1"),
            reasons=column("reason", "i1", Reason.MOVED),
            event_times=np.array([one.get("event_time", one["time"]) for one in crossings], dtype="i8"),
            ordinals=column("ordinal", "i4"),
            rows=np.arange(len(crossings), dtype="i4"),
            passes=column("pass_", "i4"),
            values=column("value", "f8", 0.0)[None, :],
        ),
        settled,
        last_times,
        lags,
    )


def said(emitted: TrackingEvents) -> list[str]:
    """`+5` or `-5`: sign and event time; `+5/8`: confirmed at 8; `5-8`: a transition begun at 5."""
    signs = {1: "+", -1: "-"}
    return [
        f"{began}-{time}" if began != NEVER else f"{signs[sign]}{time}" + (f"/{sure}" if sure != NEVER else "")
        for sign, time, sure, began in zip(
            emitted.events.signs.tolist(),
            emitted.events.event_times.tolist(),
            emitted.events.confirmed_times.tolist(),
            emitted.events.began.tolist(),
            strict=True,
        )
    ]


def ids_of(slots: Int32s) -> Ids:
    starts = np.arange(slots.size + 1, dtype=np.int64)
    data = slots.astype(np.uint8)
    return Ids(starts, data, hash_ids(starts, data))


def take(pairs: Trackings) -> int:
    """Take what changed; return how many pairs that was."""
    return len(pairs.take_touched(lambda slot: f"q{slot}", ids_of).ids)


# -- stay_for, away_for -------------------------------------------------------------------------------------


def test_a_stay_is_emitted_when_it_has_lasted_with_the_time_at_which_it_began() -> None:
    pairs = tracking(stay_for_ms=3)

    assert said(play(pairs, crossing(5, IN), settled=8)) == []
    assert said(play(pairs, settled=9)) == ["+5/8"]


def test_a_stay_that_ends_at_its_due_is_not_emitted_and_one_that_ends_later_is() -> None:
    assert said(play(tracking(stay_for_ms=3), crossing(5, IN), crossing(8, OUT), settled=20)) == []
    assert said(play(tracking(stay_for_ms=3), crossing(5, IN), crossing(9, OUT), settled=20)) == ["+5/8", "-9"]


def test_who_comes_back_in_time_has_not_been_away() -> None:
    emitted = play(tracking(away_for_ms=3), crossing(1, IN), crossing(5, OUT), crossing(8, IN), settled=20)

    assert said(emitted) == ["+1"]


def test_a_confirmed_event_has_the_value_and_the_ordinal_of_its_crossing_and_no_row() -> None:
    emitted = play(tracking(stay_for_ms=3), crossing(5, IN, value=2.5, ordinal=4), settled=9)

    assert (emitted.events.values.tolist(), emitted.events.ordinals.tolist(), emitted.events.rows.tolist()) == (
        [[2.5]],
        [4],
        [-1],
    )
    assert (emitted.events.moments.tolist(), emitted.events.whens.tolist()) == ([8], [FIRED])


def test_a_crossing_that_does_not_wait_is_emitted_at_once_with_its_row() -> None:
    emitted = play(tracking(away_for_ms=3), crossing(5, IN, value=2.5))

    assert said(emitted) == ["+5"]
    assert (emitted.events.rows.tolist(), emitted.events.moments.tolist(), emitted.events.whens.tolist()) == (
        [0],
        [5],
        [AT_READING],
    )


def test_what_waits_waits_as_long_as_the_new_options_say_from_when_it_began() -> None:
    pairs = tracking(stay_for_ms=100)
    play(pairs, crossing(5, IN), settled=50)

    pairs.set_options(0, query(stay_for_ms=10))

    assert pairs.next_due(has_moved=True) == 15
    assert said(play(pairs, settled=51)) == ["+5/15"]


def test_what_waits_at_an_edit_to_plain_options_is_emitted_then() -> None:
    pairs = tracking(stay_for_ms=100)
    play(pairs, crossing(5, IN))

    assert said(pairs.flush(0)) == ["+5/5"]
    assert pairs.n_pending == 0


# -- ends ---------------------------------------------------------------------------------------------------


def test_an_end_tells_a_loud_member_and_drops_what_waits() -> None:
    emitted_member = play(tracking(away_for_ms=9), crossing(1, IN), crossing(5, OUT), crossing(6, END))
    waiting = play(tracking(stay_for_ms=9), crossing(1, IN), crossing(5, END), settled=20)

    assert said(emitted_member) == ["+1", "-6"]
    assert said(waiting) == []


def test_at_one_moment_what_is_due_comes_after_the_readings_and_before_what_expires() -> None:
    expiry = {"reason": Reason.STREAM_EXPIRED, "class_": AT_STREAM_EXPIRY}

    emitted = play(tracking(stay_for_ms=3), crossing(4, END, **expiry), crossing(1, IN), settled=20)

    assert said(emitted) == ["+1/4", "-4"]
    assert emitted.events.whens.tolist() == [FIRED, AT_STREAM_EXPIRY]
    assert AT_READING < FIRED < AT_STREAM_EXPIRY < AT_QUERY_EXPIRY


# -- exit_region --------------------------------------------------------------------------------------------


def test_a_member_that_enters_its_region_again_is_still_the_same_member() -> None:
    # With an exit region the two crossings are not of one region, so they need not alternate.
    emitted = play(tracking(), crossing(1, IN), crossing(2, IN), crossing(3, OUT), crossing(4, OUT), settled=20)

    assert said(emitted) == ["+1", "-3"]


# -- cooldown, max_events -----------------------------------------------------------------------------------


def test_a_visit_within_the_cooldown_is_silent_to_its_end() -> None:
    emitted = play(tracking(cooldown_ms=10), crossing(1, IN), crossing(2, OUT), crossing(11, IN), crossing(30, OUT))

    assert said(emitted) == ["+1", "-2"]
    assert emitted.n_suppressed == 1


def test_the_cooldown_counts_from_the_last_entry_that_was_emitted() -> None:
    visits = [crossing(time + leaves, OUT if leaves else IN) for time in (0, 10, 15) for leaves in (0, 1)]

    assert said(play(tracking(cooldown_ms=10), *visits)) == ["+0", "-1", "+15", "-16"]


def test_a_cooldown_compares_the_time_of_the_event_and_not_of_the_reading_that_shows_it() -> None:
    passing = [crossing(20, IN, event_time=8, pass_=1), crossing(20, OUT, event_time=9, pass_=1)]

    emitted = play(tracking(cooldown_ms=10), crossing(0, IN), crossing(1, OUT), *passing)

    assert (said(emitted), emitted.n_suppressed) == (["+0", "-1"], 1)


def test_after_max_events_nothing_is_emitted_and_what_is_kept_back_is_counted() -> None:
    pairs = tracking(max_events=3)

    emitted = play(pairs, *(crossing(time, IN if time % 2 else OUT) for time in range(1, 9)))

    # The - of a + that was emitted, and each + behind it.
    assert (said(emitted), emitted.n_suppressed) == (["+1", "-2", "+3"], 3)


def test_a_visit_whose_entry_max_events_kept_back_is_silent_to_its_end_whatever_an_edit_allows() -> None:
    pairs = tracking(max_events=2)
    assert said(play(pairs, crossing(1, IN), crossing(2, OUT), crossing(3, IN))) == ["+1", "-2"]

    pairs.set_options(0, query(max_events=9))

    assert said(play(pairs, crossing(4, OUT), crossing(5, IN), crossing(6, OUT))) == ["+5", "-6"]


def test_an_entry_that_max_events_kept_back_begins_no_cooldown() -> None:
    pairs = tracking(cooldown_ms=10, max_events=2)
    play(pairs, crossing(1, IN), crossing(2, OUT), crossing(20, IN), crossing(21, OUT))

    pairs.set_options(0, query(cooldown_ms=10, max_events=9))

    assert said(play(pairs, crossing(22, IN), crossing(23, OUT))) == ["+22", "-23"]


def test_a_number_of_events_counts_from_the_first_event_also_when_it_is_changed() -> None:
    for max_events, expected in ((1, []), (2, ["-5"]), (3, ["-5", "+6"])):
        pairs = tracking(max_events=1)
        assert said(play(pairs, crossing(1, IN))) == ["+1"]

        pairs.set_options(0, query(max_events=max_events, away_for_ms=0))

        assert said(play(pairs, crossing(5, OUT), crossing(6, IN))) == expected


def test_a_number_of_events_that_is_new_counts_from_the_edit() -> None:
    pairs = tracking(away_for_ms=1)
    play(pairs, crossing(1, IN), crossing(2, OUT), settled=9)

    pairs.set_options(0, query(max_events=2))

    assert said(play(pairs, crossing(10, IN), crossing(11, OUT), crossing(12, IN))) == ["+10", "-11"]


def test_a_changed_cooldown_counts_from_the_last_entry_unless_it_was_over() -> None:
    for last_time, expected in ((11, ["+102"]), (12, ["+50"])):
        pairs = tracking(cooldown_ms=10)
        play(pairs, crossing(1, IN), crossing(2, OUT))

        pairs.set_options(0, query(cooldown_ms=100), np.array([last_time]))

        assert said(play(pairs, crossing(50, IN), crossing(51, OUT), crossing(102, IN)))[:1] == expected


# -- silent members -----------------------------------------------------------------------------------------


def test_a_silent_member_leaves_without_a_word_and_is_like_any_other_then() -> None:
    pairs = tracking(away_for_ms=3)
    pairs.set_visits(0, np.array([0, 1], dtype=np.int32), np.array([SILENT, EMITTED], dtype=np.int8))

    emitted = play(pairs, crossing(5, OUT), crossing(5, OUT, stream=1), crossing(10, IN), settled=20)

    assert sorted(zip(emitted.events.streams.tolist(), said(emitted), strict=True)) == [(0, "+10"), (1, "-5/8")]


# -- transitions --------------------------------------------------------------------------------------------


def test_in_then_out_is_a_visit_of_at_most_within() -> None:
    pairs = tracking(kind=Kind.TRANSITION, pattern=Pattern.IN_THEN_OUT, within_ms=3)

    emitted = play(
        pairs,
        *(crossing(1, IN), crossing(4, OUT, value=7.0), crossing(10, IN), crossing(14, OUT), crossing(15, OUT)),
        settled=30,
    )

    assert said(emitted) == ["1-4"]
    assert (emitted.events.values.tolist(), emitted.events.rows.tolist()) == ([[7.0]], [1])


def test_in_not_out_is_a_stay_emitted_when_within_is_over_with_the_value_that_came_in() -> None:
    pairs = tracking(kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=3)

    assert said(play(pairs, crossing(1, IN, value=7.0), settled=4)) == []
    emitted = play(pairs, crossing(9, OUT), settled=9)

    assert said(emitted) == ["1-4"]
    assert (emitted.events.values.tolist(), emitted.events.rows.tolist(), emitted.events.confirmed_times.tolist()) == (
        [[7.0]],
        [-1],
        [NEVER],
    )
    assert said(play(pairs, settled=30)) == []


def test_an_out_at_the_end_of_within_is_no_stay() -> None:
    pairs = tracking(kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=3)

    assert said(play(pairs, crossing(1, IN), crossing(4, OUT), settled=30)) == []


def test_the_mirrored_patterns_open_with_an_out() -> None:
    crossings = [crossing(1, IN), crossing(2, OUT), crossing(4, IN), crossing(5, OUT)]

    assert said(
        play(tracking(kind=Kind.TRANSITION, pattern=Pattern.OUT_THEN_IN, within_ms=3), *crossings, settled=30)
    ) == ["2-4"]
    assert said(
        play(tracking(kind=Kind.TRANSITION, pattern=Pattern.OUT_NOT_IN, within_ms=3), *crossings, settled=30)
    ) == ["5-8"]


def test_a_crossing_belongs_to_each_query_that_it_crosses() -> None:
    pairs = tracking(kind=Kind.TRANSITION, pattern=Pattern.IN_THEN_OUT, within_ms=3)
    pairs.set_options(1, query(kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=1))
    pairs.set_options(2, query(stay_for_ms=2))

    emitted = play(pairs, *(crossing(t, a, query=q) for q in range(3) for t, a in ((1, IN), (4, OUT))), settled=9)

    assert sorted(zip(emitted.events.queries.tolist(), said(emitted), strict=True)) == [
        (0, "1-4"),
        (1, "1-2"),
        (2, "+1/3"),
        (2, "-4"),
    ]


def test_an_end_of_a_query_or_stream_is_no_crossing() -> None:
    pairs = tracking(kind=Kind.TRANSITION, pattern=Pattern.IN_THEN_OUT, within_ms=3)

    assert said(play(pairs, crossing(1, IN), crossing(2, END), crossing(3, OUT), settled=30)) == []


def test_accesses_are_counted_as_the_paper_counts_them() -> None:
    pairs = tracking(kind=Kind.TRANSITION, pattern=Pattern.IN_THEN_OUT, within_ms=3)

    # Each crossing probes, an insert is two, a match is two, the deletion of what is too old is two.
    play(pairs, crossing(1, IN), crossing(2, OUT), crossing(3, IN), settled=30)

    assert pairs.accesses == 3 * 1 + 2 * 2 + 2 + 2


# -- rows ---------------------------------------------------------------------------------------------------


def test_a_pair_that_is_as_if_never_seen_has_no_row_once_it_was_taken() -> None:
    pairs = tracking(stay_for_ms=3)
    play(pairs, crossing(1, IN), crossing(2, OUT), crossing(2, IN, stream=1))

    assert (take(pairs), len(pairs), pairs.n_pending) == (2, 1, 1)
    assert take(pairs) == 0


def test_a_cooldown_keeps_its_row_until_the_stream_has_been_seen_after_it() -> None:
    pairs = tracking(cooldown_ms=10)
    play(pairs, crossing(1, IN), crossing(2, OUT), settled=40, last_times=np.array([11]))
    take(pairs)
    assert len(pairs) == 1

    # It is asked for again a cooldown later, so that streams which are silent cost little.
    assert pairs.next_due(has_moved=True) == 50
    play(pairs, settled=51, last_times=np.array([12]))

    assert (take(pairs), len(pairs)) == (1, 0)


def test_the_pairs_of_a_stream_are_found_in_queries_of_both_kinds() -> None:
    pairs = tracking(stay_for_ms=3)
    pairs.set_options(1, query(kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=1))
    play(pairs, *(crossing(1, IN, query=q, stream=s) for q in (0, 1) for s in (4, 5, 6)))

    queries, streams = pairs.rows_of_streams(np.array([4, 6, 9], dtype=np.int32))

    assert sorted(zip(queries.tolist(), streams.tolist(), strict=True)) == [(0, 4), (0, 6), (1, 4), (1, 6)]


def test_a_cooldown_that_is_over_ends_with_its_stream_even_if_time_goes_back_then() -> None:
    expiry = {"reason": Reason.STREAM_EXPIRED, "class_": AT_STREAM_EXPIRY}
    for expires_at, expected in ((12, ["+11"]), (11, [])):
        pairs = tracking(cooldown_ms=10)
        play(pairs, crossing(1, IN), crossing(2, OUT), crossing(expires_at, END, **expiry))

        assert said(play(pairs, crossing(11, IN))) == expected


def test_pairs_that_go_leave_the_others_where_they_are_found() -> None:
    pairs, rng = tracking(stay_for_ms=3), np.random.default_rng(7)
    inside: set[int] = set()
    for _ in range(6):
        chosen = set(rng.choice(2_000, 700, replace=False).tolist())
        play(pairs, *(crossing(1, OUT if stream in inside else IN, stream=stream) for stream in sorted(chosen)))
        take(pairs)
        inside ^= chosen

        assert sorted(pairs.rows_of(0)[0].tolist()) == sorted(inside)
        pairs._check()


def test_a_forgotten_query_leaves_nothing_and_its_slot_may_be_of_the_other_kind() -> None:
    pairs = tracking(stay_for_ms=3)
    play(pairs, *(crossing(1, IN, stream=stream) for stream in range(1000)))

    pairs.forget(0)

    assert (len(pairs), pairs.n_pending, take(pairs)) == (0, 0, 0)
    pairs.set_options(0, query(kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=1))
    assert said(play(pairs, crossing(5, IN), settled=20)) == ["5-6"]
    pairs._check()


def test_a_waiting_crossing_in_two_dimensions_takes_at_most_64_bytes_at_every_size() -> None:
    pairs, rng = Trackings(2), np.random.default_rng(7)
    for slot in range(100):
        pairs.set_options(slot, query(kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=1000))
    numbers = rng.permutation(60_000)
    for begin in range(0, numbers.size, 500):
        chosen = numbers[begin : begin + 500]
        n = chosen.size
        zeros = np.zeros(n, dtype=np.int32)
        small = zeros.astype(np.int8)
        times = zeros.astype(np.int64)
        queries, streams = (chosen % 100).astype(np.int32), (chosen // 100).astype(np.int32)
        ins = np.full(n, IN, dtype=np.int8)
        pairs.run(
            TrackingItems(queries, streams, times, small, ins, small, times, zeros, zeros, zeros, rng.random((2, n))), 0
        )
        assert pairs.n_pending == begin + n
        assert pairs.n_pending < 20_000 or pairs.nbytes <= 64 * pairs.n_pending
    pairs._check()


def test_while_nothing_is_due_there_is_nothing_to_run() -> None:
    pairs = tracking(stay_for_ms=5)
    assert pairs.next_due(has_moved=True) > 2**62
    play(pairs, crossing(3, IN), crossing(1, IN, stream=1))

    assert pairs.next_due(has_moved=True) == 6
    assert said(play(pairs, settled=7)) == ["+1/6"]
    assert pairs.next_due(has_moved=True) == 8


def test_a_timer_that_a_lag_delays_is_not_looked_at_before_the_time_moves() -> None:
    pairs = tracking(stay_for_ms=5)
    play(pairs, crossing(1, IN, stream=0), crossing(2, IN, stream=1), crossing(40, IN, stream=2), settled=2)

    last_times = np.array([1, 2, 40])
    assert said(play(pairs, settled=10, last_times=last_times, lags=np.array([20, 0, 0]))) == ["+2/7"]
    assert pairs.next_due(has_moved=False) == 45
    assert pairs.next_due(has_moved=True) == 6
    assert said(play(pairs, settled=26, last_times=last_times, lags=np.array([20, 0, 0]))) == []
    assert said(play(pairs, settled=26, last_times=last_times, lags=np.array([19, 0, 0]))) == ["+1/6"]
    pairs._check()
