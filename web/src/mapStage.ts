// The map: land, tiles and regions by MapLibre; streams, flashes and what is being drawn on a canvas above it.

import "maplibre-gl/dist/maplibre-gl.css";
import { AttributionControl, type GeoJSONSource, Map as MapLibreMap, NavigationControl, setWorkerUrl } from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?url";
import { feature, mesh } from "topojson-client";
import worldUrl from "world-atlas/countries-50m.json?url";
import { h } from "./dom";
import { drawn, drawnKey } from "./drawnQueries";
import type { FeedStreams } from "./feedStreams";
import { pieces, unwrappedLand } from "./land";
import { DEGREES, type Extent, toLngLat } from "./projection";
import { asDefinition, type Region } from "./protocol";
import { extentOf, type Point, polygonsOf } from "./regions";
import type { Query, Store } from "./store";
import { StreamLayer } from "./streamLayer";

type Feature = GeoJSON.Feature<GeoJSON.MultiPolygon, { inside: boolean; selected: boolean; paused: boolean }>;

const EMPTY: GeoJSON.FeatureCollection = { type: "FeatureCollection", features: [] };
const REGIONS_EVERY_MS = 400;

setWorkerUrl(workerUrl);

export class MapStage {
  readonly element: HTMLElement;
  readonly map: MapLibreMap;
  readonly layer: StreamLayer;
  private draft: Region | null = null;
  private shownFeed = "";
  private regionsAt = 0;
  private regionsKey = "";
  private isReady = false;
  private readonly extents = new Map<string, Extent>();

  constructor(private readonly store: Store) {
    const mapElement = h("div", { class: "map" });
    this.element = h("div", { class: "stage-map" }, mapElement);
    this.map = new MapLibreMap({
      container: mapElement,
      style: style(store.setup?.tiles ?? "", store.setup?.tiles_credit ?? ""),
      center: [12, 24],
      zoom: 1.4,
      minZoom: 0.4,
      maxPitch: 0,
      dragRotate: false,
      pitchWithRotate: false,
      rollEnabled: false,
      attributionControl: false,
      fadeDuration: 0,
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.keyboard.disableRotation();
    this.map.addControl(new NavigationControl({ showCompass: false }), "bottom-left");
    this.map.addControl(new AttributionControl({ compact: true, customAttribution: "Natural Earth" }), "bottom-right");
    this.map.getCanvas().setAttribute("aria-label", "Map. Arrow keys move it, plus and minus zoom.");
    this.layer = new StreamLayer(this, store);
    this.element.append(this.layer.canvas);
    this.map.on("load", () => {
      this.isReady = true;
      void this.addLand();
      this.refresh(true);
    });
    this.map.on("move", () => this.layer.draw());
    this.map.on("resize", () => this.layer.resize());
    this.map.on("click", (event) => this.pick(event.point.x, event.point.y));
  }

  get feed(): FeedStreams | undefined {
    const feed = this.store.current;
    return feed?.setup.dimensions.length === 2 ? feed : undefined;
  }

  /** Shows another feed, selection or set of regions. */
  refresh(force = false): void {
    const { feed } = this;
    if (!this.isReady || !feed?.projection) return;
    if (this.shownFeed !== feed.name) {
      this.shownFeed = feed.name;
      force = true;
      for (const layer of ["land", "borders", "tiles"]) {
        if (this.map.getLayer(layer)) this.map.setLayoutProperty(layer, "visibility", feed.setup.lonlat ? "visible" : "none");
      }
      this.map.setRenderWorldCopies(feed.setup.lonlat);
      this.goHome(false);
    }
    const now = performance.now();
    if (!force && now - this.regionsAt < REGIONS_EVERY_MS) return;
    this.regionsAt = now;
    this.drawRegions(feed, force);
    this.layer.draw();
  }

  /** Shows all of a feed: a plane by its extent, the globe as a whole. */
  goHome(animate = true): void {
    const { feed } = this;
    if (!feed?.projection) return;
    const options = { animate, padding: 48, duration: 500 };
    if (feed.setup.lonlat) this.map.easeTo({ center: [12, 24], zoom: this.wholeWorld(), ...options, padding: 0 });
    else this.fit(feed.measure(this.store.regionExtent(feed)) ?? feed.extent, options);
  }

  showRegion(region: Region): void {
    const { feed } = this;
    const extent = feed && extentOf(polygonsOf(region, feed.setup, feed.extent));
    if (extent) this.fit(extent, { animate: true, padding: 90, duration: 600, maxZoom: feed.setup.lonlat ? 12 : 20 });
  }

  /** Shows a region that is being edited; null: none. */
  setDraft(region: Region | null): void {
    this.draft = region;
    const { feed } = this;
    if (!this.isReady || !feed?.projection) return;
    const source = this.map.getSource<GeoJSONSource>("draft");
    source?.setData(region ? { ...EMPTY, features: [this.featureOf(region, feed, {})] } : EMPTY);
  }

  /** Returns the point of the feed at a place of the screen. */
  unproject(x: number, y: number): Point {
    const at = this.map.unproject([x, y]);
    const [u, v] = DEGREES.toSquare(at.lng, at.lat);
    const { feed } = this;
    if (!feed?.projection || feed.setup.lonlat) return [at.lng, at.lat];
    return feed.projection.fromSquare(u, v);
  }

  /** Returns the place on the screen of a point of the feed, the nearest one if the world is there several times. */
  project([x, y]: Point): Point {
    const { feed } = this;
    if (!feed?.projection) return [0, 0];
    const [lon, lat] = feed.setup.lonlat ? [x, y] : toLngLat(feed.projection, x, y);
    const middle = this.map.getCenter().lng;
    const near = feed.setup.lonlat ? lon + 360 * Math.round((middle - lon) / 360) : lon;
    const at = this.map.project([near, lat]);
    return [at.x, at.y];
  }

  private fit(extent: Extent, options: object): void {
    const { feed } = this;
    if (!feed?.projection) return;
    const corner = (x: number, y: number): [number, number] =>
      feed.setup.lonlat ? [x, y] : toLngLat(feed.projection ?? DEGREES, x, y);
    this.map.fitBounds([corner(extent.left, extent.low), corner(extent.right, extent.high)], options);
  }

  private wholeWorld(): number {
    const { clientWidth, clientHeight } = this.element;
    return Math.max(0.4, Math.log2(Math.max(clientWidth, clientHeight * 1.25) / 512));
  }

  private async addLand(): Promise<void> {
    const response = await fetch(worldUrl);
    const world = (await response.json()) as Parameters<typeof feature>[0];
    const countries = world.objects["countries"];
    if (!countries) return;
    const land = unwrappedLand(feature(world, countries) as unknown as GeoJSON.FeatureCollection);
    this.map.getSource<GeoJSONSource>("land")?.setData(land);
    const lines = mesh(world as never, countries as never, (a: unknown, b: unknown) => a !== b);
    const coordinates = lines.coordinates.flatMap(pieces);
    this.map.getSource<GeoJSONSource>("borders")?.setData({ type: "MultiLineString", coordinates });
  }

  private drawRegions(feed: FeedStreams, force: boolean): void {
    const queries = this.store.queriesOf(feed.name);
    const { selected } = this.store;
    const key = drawnKey(queries, selected);
    if (!force && key === this.regionsKey) return;
    this.regionsKey = key;
    this.extents.clear();
    const features = drawn(queries, (query, region): Feature => {
      const paused = asDefinition(query.definition)?.["enabled"] === false;
      const shown = this.featureOf(region, feed, { inside: query.members > 0, selected: query.id === selected, paused });
      const extent = extentOf(polygonsOf(region, feed.setup, feed.extent));
      if (extent) this.extents.set(query.id, extent);
      return shown;
    });
    this.map.getSource<GeoJSONSource>("regions")?.setData({ type: "FeatureCollection", features });
  }

  private featureOf(region: Region, feed: FeedStreams, properties: object): Feature {
    const at = ([x, y]: Point): number[] => (feed.setup.lonlat ? [x, y] : toLngLat(feed.projection ?? DEGREES, x, y));
    const coordinates = polygonsOf(region, feed.setup, feed.extent).map((rings) => rings.map((ring) => ring.map(at)));
    return { type: "Feature", geometry: { type: "MultiPolygon", coordinates }, properties: properties as Feature["properties"] };
  }

  /** Selects the smallest region at a place of the screen. */
  private pick(x: number, y: number): void {
    if (this.draft || this.element.classList.contains("drawing")) return;
    const [px, py] = this.unproject(x, y);
    let best: { id: string; size: number } | null = null;
    for (const [id, { left, right, low, high }] of this.extents) {
      const shift = this.feed?.setup.lonlat ? 360 * Math.round(((left + right) / 2 - px) / 360) : 0;
      if (px + shift < left || px + shift > right || py < low || py > high) continue;
      const size = (right - left) * (high - low);
      if (!best || size < best.size) best = { id, size };
    }
    if (best) this.store.select(best.id);
  }

  queryRegions(): Iterable<[string, Extent]> {
    return this.extents;
  }

  labelOf(query: Query): string {
    return query.id;
  }
}

function style(tiles: string, credit: string): maplibreStyle {
  return {
    version: 8,
    sources: {
      land: { type: "geojson", data: EMPTY, tolerance: 0.4 },
      borders: { type: "geojson", data: EMPTY, tolerance: 0.4 },
      regions: { type: "geojson", data: EMPTY, tolerance: 0.1 },
      draft: { type: "geojson", data: EMPTY, tolerance: 0 },
      ...(tiles ? { tiles: { type: "raster", tiles: [tiles], tileSize: 256, attribution: text(credit) } } : {}),
    },
    layers: [
      { id: "sea", type: "background", paint: { "background-color": "#0b1420" } },
      { id: "land", type: "fill", source: "land", paint: { "fill-color": "#182536", "fill-outline-color": "#2b3d55" } },
      { id: "borders", type: "line", source: "borders", paint: { "line-color": "#24344a", "line-width": 0.7 } },
      ...(tiles ? [{ id: "tiles", type: "raster", source: "tiles", paint: { "raster-opacity": 0.75 } }] : []),
      {
        id: "region-fill",
        type: "fill",
        source: "regions",
        paint: {
          "fill-color": ["case", ["get", "paused"], "#6b7a90", ["get", "inside"], "#ffb454", "#4fd1c5"],
          "fill-opacity": ["case", ["get", "selected"], 0.3, ["get", "inside"], 0.16, 0.09],
        },
      },
      {
        id: "region-line",
        type: "line",
        source: "regions",
        layout: { "line-join": "round" },
        paint: {
          "line-color": ["case", ["get", "selected"], "#ffffff", ["get", "paused"], "#6b7a90", ["get", "inside"], "#ffb454", "#4fd1c5"],
          "line-width": ["case", ["get", "selected"], 2.2, 1.2],
          "line-opacity": ["case", ["get", "selected"], 1, 0.75],
        },
      },
      { id: "draft-fill", type: "fill", source: "draft", paint: { "fill-color": "#b794f6", "fill-opacity": 0.22 } },
      { id: "draft-line", type: "line", source: "draft", paint: { "line-color": "#d6bcfa", "line-width": 2, "line-dasharray": [2, 1.5] } },
    ],
  } as maplibreStyle;
}

type maplibreStyle = Exclude<ConstructorParameters<typeof MapLibreMap>[0]["style"], string | undefined>;

/** MapLibre shows an attribution as markup. */
function text(credit: string): string {
  const span = document.createElement("span");
  span.textContent = credit;
  return span.innerHTML;
}
