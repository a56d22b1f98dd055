// The health of the service: its figures of the last seconds, and the dead letters with their reasons.

import { h, replace } from "./dom";
import { bytes, clock, seconds, whole } from "./format";
import type { Store } from "./store";

const WORDS = {
  running: "The service runs.",
  starting: "The service starts, or its query has ended.",
  unreachable: "The service does not answer.",
};

export class HealthPanel {
  readonly element = h("section", { class: "panel-body" });
  private readonly summary = h("div");
  private readonly dead = h("ol", { class: "dead", "aria-label": "Dead letters, the newest first" });
  private shownDead = -1;

  constructor(private readonly store: Store) {
    this.element.append(this.summary, h("h3", {}, "Dead letters"), this.dead);
    store.on("health", () => !this.element.hidden && this.show());
  }

  show(): void {
    const { health } = this.store;
    if (!health) return;
    const state = health.service ?? "unreachable";
    const figure = (name: string, text: string, help: string): HTMLElement =>
      h("div", { title: help }, h("dt", {}, name), h("dd", {}, text));
    const rate = (value: number | undefined): string => (value === undefined ? "–" : whole(value));
    const amount = (value: number | undefined): string => (value === undefined ? "–" : whole(value));
    const notes = [
      ...Object.entries(health.troubles).map(([topic, why]) => `${topic}: ${why}`),
      health.skipped ? `${whole(health.skipped)} readings came faster than this page reads them, and were skipped here; the service read them.` : "",
      ...Object.entries(health.streams_left_out).map(([feed, n]) => `Feed ${feed} has at least ${whole(n)} more streams than this page shows.`),
      health.queries_left_out ? "There are more queries than this page shows." : "",
    ].filter(Boolean);
    replace(
      this.summary,
      h("p", { class: `state ${state}` }, WORDS[state]),
      h(
        "dl",
        { class: "figures" },
        figure("Readings/s", rate(health.readings_rate), "Readings that the service applies, over ten seconds"),
        figure("Events/s", rate(health.events_rate), "Events that it emits"),
        figure("Latency p50", seconds(health.latency_p50), "From a record's timestamp to its event, half of the events"),
        figure("Latency p99", seconds(health.latency_p99), "99 % of the events"),
        figure("Batch", seconds(health.batch_seconds), "Mean time of a batch"),
        figure("Lag", amount(health.lag), "Records that the last batch left unread"),
        figure("Queries", amount(health.queries), "Registered queries"),
        figure("Streams", amount(health.streams), "Known streams"),
        figure("Late", amount(health.late), "Late readings, dropped since the start"),
        figure("State", health.state_bytes === undefined ? "–" : bytes(health.state_bytes), "Size of the state"),
      ),
      notes.length > 0 && h("ul", { class: "troubles" }, ...notes.map((note) => h("li", {}, note))),
    );
    this.showDead();
  }

  private showDead(): void {
    const { dead } = this.store;
    const newest = dead[dead.length - 1]?.n ?? 0;
    if (newest === this.shownDead) return;
    this.shownDead = newest;
    const rows = [...dead].reverse().map((letter) =>
      h(
        "li",
        {},
        h("time", {}, clock(letter.time)),
        h("span", { class: "what" }, h("b", {}, letter.code), ` ${letter.message}`),
        h("small", {}, `${letter.topic}[${letter.partition}]@${letter.offset}: ${letter.value}`),
      ),
    );
    replace(this.dead, ...(rows.length ? rows : [h("li", { class: "empty" }, "No record was refused.")]));
  }
}
