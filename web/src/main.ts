// The page: the stage on the left, the panel on the right, and what leads from one to the other.

import "./style.css";
import { ChartStage } from "./chartStage";
import { connect } from "./connection";
import { h, replace, setText } from "./dom";
import { DrawTool, type Shape } from "./drawTool";
import { EventsPanel } from "./eventsPanel";
import { seconds, whole } from "./format";
import { HealthPanel } from "./healthPanel";
import { MapStage } from "./mapStage";
import { asDefinition, regionOf } from "./protocol";
import { QueriesPanel } from "./queriesPanel";
import { QueryEditor } from "./queryEditor";
import { Store } from "./store";

type Tab = "events" | "queries" | "health";

const store = new Store();
const SAY_MS = 9000;

// The address that `bmq view` prints has the token; the cookie has it from now on.
if (location.search.includes("token=")) history.replaceState(null, "", location.pathname);

function build(): void {
  let map: MapStage | null = null;
  let draw: DrawTool | null = null;
  const chart = new ChartStage(store);
  const stage = h("main", { class: "stage", "aria-label": "Live streams" });
  const feeds = h("div", { class: "feeds", role: "radiogroup", "aria-label": "Feed" });
  const tools = h("div", { class: "tools", role: "group", "aria-label": "Draw a query" });
  const noStage = h("p", { class: "no-stage", hidden: true });
  const toast = h("div", { class: "toast", role: "status", "aria-live": "polite" });
  const refusal = h("p", { class: "refusal", role: "alert", hidden: true });
  let sayTimer = 0;
  const say = (message: string, isFault = false): void => {
    setText(toast, message);
    toast.className = `toast shown${isFault ? " bad" : ""}`;
    clearTimeout(sayTimer);
    sayTimer = window.setTimeout(() => (toast.className = "toast"), SAY_MS);
  };

  const editor = new QueryEditor(store, {
    showRegion: (region, feed) => {
      if (feed && store.feeds.has(feed)) store.show(feed);
      const onMap = store.current?.setup.dimensions.length === 2;
      draw?.edit(onMap ? region : null, (moved) => editor.setRegion(moved));
      chart.edit(onMap ? null : region, (moved) => editor.setRegion(moved));
    },
    closed: (id) => {
      showTab(id === null ? tab : "queries");
      if (id !== null) store.select(id);
    },
    say,
  });
  const events = new EventsPanel(store);
  const queries = new QueriesPanel(store, {
    create: () => openEditor(freeId("query"), { kind: "border", feed: store.feed }, true),
    edit: (id, definition) => openEditor(id, definition, false),
    locate: (id) => locate(id),
    say,
  });
  const health = new HealthPanel(store);
  const panels = { events, queries, health };
  let tab: Tab = "events";

  const tabs = (["events", "queries", "health"] as const).map((name) => {
    const label = `${name[0]?.toUpperCase()}${name.slice(1)}`;
    const button = h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}` }, label);
    button.addEventListener("click", () => {
      if (name === "queries") store.select(null);
      showTab(name);
    });
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(tabs.indexOf(button) + step + tabs.length) % tabs.length];
      next?.focus();
      next?.click();
    });
    return button;
  });

  function showTab(name: Tab): void {
    tab = name;
    if (editor.isOpen) {
      editor.element.hidden = true;
      draw?.edit(null, () => undefined);
      chart.edit(null, () => undefined);
    }
    for (const [one, { element }] of Object.entries(panels)) {
      element.hidden = one !== name;
      element.id = `panel-${one}`;
      element.setAttribute("role", "tabpanel");
      element.setAttribute("aria-labelledby", `tab-${one}`);
    }
    tabs.forEach((button) => {
      const isShown = button.id === `tab-${name}`;
      button.setAttribute("aria-selected", String(isShown));
      button.tabIndex = isShown ? 0 : -1;
    });
    if (name === "health") health.show();
  }

  function openEditor(id: string, definition: unknown, isNew: boolean): void {
    if (store.setup?.read_only) return;
    draw?.cancel();
    for (const { element } of Object.values(panels)) element.hidden = true;
    editor.open(id, definition, isNew);
    const region = regionOf(definition);
    if (!isNew && region) map?.showRegion(region);
  }

  function locate(id: string): void {
    const definition = asDefinition(store.queries.get(id)?.definition);
    if (!definition || !("feed" in definition)) return;
    store.show(String(definition.feed));
    const region = regionOf(definition);
    if (region) map?.showRegion(region);
  }

  function freeId(word: string): string {
    let n = 1;
    while (store.queries.has(`${word}-${n}`)) n += 1;
    return `${word}-${n}`;
  }

  function begin(shape: Shape): void {
    if (editor.isOpen && store.current?.setup.dimensions.length === 2) {
      // The form that is open gets the region.
      draw?.begin(shape, (region) => {
        editor.setRegion(region);
        draw?.edit(region, (moved) => editor.setRegion(moved));
      });
      return;
    }
    draw?.begin(shape, (region) => openEditor(freeId("area"), { kind: "border", feed: store.feed, region }, true));
  }

  for (const [shape, label] of [
    ["polygon", "Polygon"],
    ["box", "Box"],
    ["circle", "Circle"],
  ] as const) {
    tools.append(h("button", { type: "button", "aria-label": `Draw a ${shape}`, title: `Draw a ${shape}`, onclick: () => begin(shape) }, label));
  }
  const home = h("button", { type: "button", title: "Show the whole feed", onclick: () => map?.goHome() }, "Whole");
  tools.append(home);

  const pill = h("span", { class: "pill", role: "status" });
  const numbers = h("span", { class: "numbers" });
  const header = h(
    "header",
    {},
    h("span", { class: "brand" }, h("span", { class: "mark", "aria-hidden": "true" }), h("h1", {}, "BMQ")),
    feeds,
    h("span", { class: "space" }),
    numbers,
    pill,
  );
  const side = h(
    "aside",
    { class: "panel", "aria-label": "Events, queries and health" },
    h("div", { class: "tabs", role: "tablist", "aria-label": "Panel" }, ...tabs),
    events.element,
    queries.element,
    health.element,
    editor.element,
  );
  stage.append(chart.element, tools, noStage, refusal, toast);
  replace(document.getElementById("app") ?? document.body, header, stage, side);
  showTab("events");

  const showFeeds = (): void => {
    const names = Object.keys(store.setup?.feeds ?? {});
    replace(
      feeds,
      ...names.map((name) => {
        const input = h("input", { type: "radio", name: "feed", value: name, id: `feed-${name}`, onchange: () => store.show(name) });
        input.checked = name === store.feed;
        return h("label", { for: `feed-${name}` }, input, h("span", {}, name));
      }),
    );
    feeds.hidden = names.length < 2;
  };
  const showStage = (): void => {
    const dimensions = store.current?.setup.dimensions.length ?? 0;
    const isMap = dimensions === 2 && Boolean(store.current?.projection);
    if (map) map.element.hidden = !isMap;
    chart.element.hidden = dimensions !== 1;
    tools.hidden = !isMap;
    for (const button of [...tools.children].slice(0, 3)) (button as HTMLElement).hidden = Boolean(store.setup?.read_only);
    noStage.hidden = dimensions === 1 || isMap;
    const none = `A feed of ${dimensions} dimensions has no map and no chart. Its queries and events are in the panel.`;
    setText(noStage, dimensions === 2 ? "No reading of this feed has come yet. The first one lays out the map." : none);
    if (!isMap) draw?.cancel();
    for (const input of feeds.querySelectorAll("input")) input.checked = input.value === store.feed;
    map?.refresh(true);
    chart.refresh();
  };
  const showState = (): void => {
    const state = store.connected ? (store.health?.service ?? "starting") : "disconnected";
    const words = {
      running: "live",
      starting: "service starting",
      unreachable: "service away",
      disconnected: "reconnecting",
    };
    setText(pill, store.refusal ? "refused" : words[state]);
    setText(refusal, store.refusal);
    refusal.hidden = !store.refusal;
    pill.className = `pill ${state}`;
    const { health: figures } = store;
    const rates = figures?.readings_rate === undefined ? "" : `${whole(figures.readings_rate)} readings/s · ${whole(figures.events_rate ?? 0)} events/s`;
    const latency = figures?.latency_p50 ? ` · latency ${seconds(figures.latency_p50)}` : "";
    setText(numbers, `${rates}${latency}`);
  };

  store.on("setup", () => {
    if (!map) {
      map = new MapStage(store);
      draw = new DrawTool(map);
      stage.prepend(map.element);
      map.map.resize();
    }
    showFeeds();
    showStage();
  });
  let selected: string | null = null;
  store.on("selection", () => {
    // A query that stays selected does not lead back from a feed that was chosen after it.
    const isNew = store.selected !== selected;
    selected = store.selected;
    if (isNew && selected !== null && !editor.isOpen) {
      showTab("queries");
      const feed = asDefinition(store.queries.get(selected)?.definition)?.["feed"];
      if (typeof feed === "string" && feed !== store.feed) store.show(feed);
    }
    showStage();
  });
  store.on("queries", () => map?.refresh());
  store.on("counts", () => map?.refresh());
  store.on("streams", () => {
    if (store.current?.setup.dimensions.length === 1) chart.refresh();
    else {
      if (map?.element.hidden && store.current?.projection) showStage();
      map?.refresh();
      if ((map?.feed?.n ?? 0) > 4000) map?.layer.draw();
    }
  });
  store.on("health", showState);
  store.on("connection", showState);
  showState();
  connect(store);
}

build();
