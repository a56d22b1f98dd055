// Whether a value from the control topic has the shape of a region. Pure. Anybody may write into that topic, and the
// page also shows what the service rejects, so no type of TypeScript holds for it. Whether a region is valid, the
// service alone decides.

import type { Region } from "./protocol";
import { geojsonRings } from "./regions";

type Check = (shape: unknown) => boolean;

const SHAPES: Record<string, Check> = { box: isBox, polygon: isRing, circle: isCircle, geojson: hasRings };

/** Returns a value as a region, or null if nothing can be drawn of it. */
export function asRegion(value: unknown): Region | null {
  if (!isRecord(value)) return null;
  const named = Object.entries(SHAPES).filter(([name]) => value[name] !== undefined && value[name] !== null);
  const [only] = named;
  if (!only || named.length > 1) return null;
  const [name, fits] = only;
  return fits(value[name]) ? (value as Region) : null;
}

function isBox(box: unknown): boolean {
  return isRecord(box) && Object.values(box).every(isInterval);
}

function isInterval(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && value.every((end) => end === null || Number.isFinite(end));
}

function isCircle(circle: unknown): boolean {
  return isRecord(circle) && isPoint(circle["center"]) && Number.isFinite(circle["radius"]);
}

function hasRings(geojson: unknown): boolean {
  const polygons: unknown[] = geojsonRings(geojson);
  return polygons.length > 0 && polygons.every((rings) => Array.isArray(rings) && rings.length > 0 && rings.every(isRing));
}

function isRing(ring: unknown): boolean {
  return Array.isArray(ring) && ring.length > 0 && ring.every(isPoint);
}

function isPoint(point: unknown): boolean {
  return Array.isArray(point) && point.length >= 2 && point.every(Number.isFinite);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
