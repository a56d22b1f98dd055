// What the server of the page sends. The definitions inside are those of wire.ts, which is made from the JSON Schemas.

import { asRegion } from "./regionShape";
import type {
  BandJoinDefinition,
  BorderDefinition,
  MatchDefinition,
  ReplyWire,
  SelectDefinition,
  TransitionDefinition,
  WindowJoinDefinition,
} from "./wire";

export type Definition =
  | BorderDefinition
  | TransitionDefinition
  | MatchDefinition
  | SelectDefinition
  | BandJoinDefinition
  | WindowJoinDefinition;
export type Region = BorderDefinition["region"];
export type ErrorCode = ReplyWire.ControlCode;

export interface Fault {
  code: string;
  message: string;
}

export interface FeedSetup {
  dimensions: string[];
  lonlat: boolean;
  attributes: string[];
  join: boolean;
}

export interface Setup {
  feeds: Record<string, FeedSetup>;
  tiles: string;
  tiles_credit: string;
  members_exact: boolean;
  read_only: boolean;
}

export interface FeedUpdate {
  slots: number[];
  values: number[][];
  times: number[];
  inside: number[];
  born: Record<string, string>;
}

export interface QueryUpdate {
  id: string;
  definition: unknown;
  version: number;
  status: string;
  error: Fault | null;
}

export interface ShownEvent {
  n: number;
  kind: string;
  time: number;
  reason: string;
  tags: Record<string, string | number | boolean>;
  feed: string;
  stream: string;
  value: Record<string, number>;
  query: string;
  sign: "+" | "-" | null;
  deed: string;
}

export interface DeadLetter {
  n: number;
  time: number;
  topic: string;
  partition: string;
  offset: string;
  code: string;
  message: string;
  value: string;
}

export interface Health {
  service?: "running" | "starting" | "unreachable";
  metrics?: string;
  readings_rate?: number;
  events_rate?: number;
  latency_p50?: number | null;
  latency_p99?: number | null;
  batch_seconds?: number | null;
  lag?: number;
  late?: number;
  dead_letters?: Record<string, number>;
  queries?: number;
  streams?: number;
  state_bytes?: number;
  troubles: Record<string, string>;
  skipped: number;
  streams_left_out: Record<string, number>; // by feed, as far as they are counted
  queries_left_out: number;
}

export interface Update {
  feeds: Record<string, FeedUpdate>;
  queries: QueryUpdate[];
  gone: string[];
  events: ShownEvent[];
  missed: number;
  dead: DeadLetter[];
  counts?: [string, number, number][];
  health?: Health;
}

export interface Details {
  id: string;
  versions: { version: number; published: number; definition: unknown }[];
  replies: { status: string; version: number | null; offset: number; error: Fault | null }[];
  members: [string, string][];
  n_members: number;
}

/** Returns a definition if the value of the control topic is an object; anything else the service has rejected. */
export function asDefinition(value: unknown): (Definition & Record<string, unknown>) | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Definition & Record<string, unknown>)
    : null;
}

/** Returns the region of a definition, or null if there is none that can be drawn: the service has rejected it, or will. */
export function regionOf(value: unknown): Region | null {
  return asRegion(asDefinition(value)?.["region"]);
}
