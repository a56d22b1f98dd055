import { describe, expect, test } from "vitest";
import { EventList, MOST_ROWS } from "../src/eventList";
import type { ShownEvent } from "../src/protocol";

function event(n: number, query = "q"): ShownEvent {
  return { n, kind: "border", time: n, reason: "moved", tags: {}, feed: "cars", stream: "a", value: { x: 0, y: 0 }, query, sign: "+", deed: "entered" };
}

function range(first: number, last: number, query = "q"): ShownEvent[] {
  return Array.from({ length: last - first + 1 }, (_, k) => event(first + k, query));
}

function numbers(list: EventList): number[] {
  return list.shown.map(({ n }) => n);
}

describe("the list of events", () => {
  test("an answer that comes after newer updates neither drops nor repeats one", () => {
    const list = new EventList();
    list.refilter([]);
    list.add(range(8, 12)); // an update, while the answer is on its way
    list.add(range(1, 10)); // the answer, of a moment before the update
    expect(numbers(list)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  test("an update that comes after a newer answer repeats nothing", () => {
    const list = new EventList();
    list.add(range(1, 10));
    expect(list.add(range(7, 10))).toBe(false);
    expect(list.add(range(9, 11))).toBe(true);
    expect(numbers(list)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  test("a new filter keeps what fits until the answer comes, also if none comes", () => {
    const list = new EventList();
    list.add([...range(1, 3, "a"), ...range(4, 6, "b")]);
    list.filter.query = "b";
    list.refilter([]);
    expect(numbers(list)).toEqual([4, 5, 6]);
    list.filter.query = "";
    list.refilter(range(1, 3, "a"));
    expect(numbers(list)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("a list that is held can be filtered, and no newer event comes into it", () => {
    const list = new EventList();
    list.filter.query = "b";
    list.add([...range(1, 3, "a"), ...range(4, 6, "b"), event(7, "a")]);
    list.hold();
    expect(list.add(range(8, 9, "b"))).toBe(false);
    expect(numbers(list)).toEqual([4, 5, 6]);
    list.filter.query = "a";
    list.refilter([...range(1, 3, "a"), event(7, "a"), event(10, "a")]);
    expect(numbers(list)).toEqual([1, 2, 3, 7]);
    list.goOn();
    list.add([event(10, "a")]);
    expect(numbers(list)).toEqual([1, 2, 3, 7, 10]);
  });

  test("a new connection empties the list, but one that is held only when it goes on", () => {
    const list = new EventList();
    list.add(range(1, 3));
    list.begin();
    expect(numbers(list)).toEqual([]);
    list.add(range(5, 6));
    list.hold();
    list.begin();
    list.add([event(1)]); // perhaps another server, with other numbers
    expect(numbers(list)).toEqual([5, 6]);
    list.goOn();
    list.add(range(1, 2));
    expect(numbers(list)).toEqual([1, 2]);
  });

  test("the newest stay", () => {
    const list = new EventList();
    list.add(range(1, 3 * MOST_ROWS));
    expect([list.shown.length, numbers(list)[0], numbers(list).at(-1)]).toEqual([MOST_ROWS, 2 * MOST_ROWS + 1, 3 * MOST_ROWS]);
  });

  test("an event of a join is one of both feeds", () => {
    const list = new EventList({ query: "", stream: "", kind: "", feed: "cars" });
    list.add([{ ...event(1), feed: "ships ~ cars" }, { ...event(2), feed: "carsharing" }]);
    expect(numbers(list)).toEqual([1]);
  });
});
