// Made from docs/schemas by `npm run types`: do not edit.

export namespace BandJoinDefinitionWire {
/**
 * A query of kind `band_join`: an event where the answer changes, the pairs whose difference is in a band.
 */
export interface BandJoinDefinition {
/**
 * Attributes of the feed and what a reading must have in each: a value, or any of a list. null: no such attribute. Of a join, "left.NAME" and "right.NAME".
 */
where?: {
[k: string]: string | boolean | number | [(string | boolean | number | number | null), ...((string | boolean | number | number | null))[]] | null
}
/**
 * The query ends so long after it was put or edited, by the feed's clock.
 */
ttl?: (string | null)
/**
 * The event time at which the query ends: RFC 3339, or epoch milliseconds from 10^11 on.
 */
expires_at?: (number | string | null)
/**
 * false: as if nothing fitted.
 */
enabled?: boolean
/**
 * The topic of this query's events; absent: the service's events topic.
 */
output_topic?: (string | null)
/**
 * Copied into every event of the query.
 */
tags?: {
[k: string]: string | boolean | number
}
kind: "band_join"
/**
 * A feed with join = true.
 */
left: string
/**
 * Another feed with join = true.
 */
right: string
on: Fields
/**
 * [lo, hi]: the left value less the right one is in it, ends included. null: unbounded.
 * 
 * @minItems 2
 * @maxItems 2
 */
band: [(number | null), (number | null)]
/**
 * A field of each side, with equal values: a dimension, an attribute, or what names the streams.
 */
equal?: (Fields1 | null)
/**
 * An event for each pair that comes or goes, or only that the answer changed.
 */
report?: ("pairs" | "queries")
}
/**
 * The dimension of each side.
 */
export interface Fields {
left: string
right: string
}
/**
 * A field of each side of a join.
 */
export interface Fields1 {
left: string
right: string
}
}
export type BandJoinDefinition = BandJoinDefinitionWire.BandJoinDefinition;

export namespace BandJoinEventWire {
/**
 * A pair came into the answer of a band join or left it; or, without a sign, a reading changed the answer.
 */
export interface BandJoinEvent {
/**
 * The same after a replay: drop repeats by it.
 */
event_id: string
query_id: string
query_version: number
/**
 * Epoch milliseconds: the later of the two readings, or the moment of an expiry.
 */
event_time: number
/**
 * The tags of the query.
 */
tags: {
[k: string]: string | boolean | number
}
kind: "band_join"
reason: ("moved" | "first_seen" | "query_registered" | "query_updated" | "query_deleted" | "query_expired" | "stream_expired")
/**
 * + came, - left. Absent with `report = "queries"`.
 */
sign?: ("+" | "-")
left?: JoinedReading
right?: JoinedReading1
[k: string]: unknown
}
/**
 * Absent with `report = "queries"` where a reading of the right feed changed it.
 */
export interface JoinedReading {
feed: string
stream_id: string
/**
 * Epoch milliseconds.
 */
event_time: number
/**
 * The stream's value in each dimension of the feed.
 */
value: {
[k: string]: number
}
[k: string]: unknown
}
/**
 * Absent with `report = "queries"` where a reading of the left feed changed it.
 */
export interface JoinedReading1 {
feed: string
stream_id: string
/**
 * Epoch milliseconds.
 */
event_time: number
/**
 * The stream's value in each dimension of the feed.
 */
value: {
[k: string]: number
}
[k: string]: unknown
}
}
export type BandJoinEvent = BandJoinEventWire.BandJoinEvent;

export namespace BorderDefinitionWire {
/**
 * A query of kind `border`: an event where a stream enters or leaves a region.
 */
export interface BorderDefinition {
/**
 * Attributes of the feed and what a reading must have in each: a value, or any of a list. null: no such attribute. Of a join, "left.NAME" and "right.NAME".
 */
where?: {
[k: string]: string | boolean | number | [(string | boolean | number | number | null), ...((string | boolean | number | number | null))[]] | null
}
/**
 * The query ends so long after it was put or edited, by the feed's clock.
 */
ttl?: (string | null)
/**
 * The event time at which the query ends: RFC 3339, or epoch milliseconds from 10^11 on.
 */
expires_at?: (number | string | null)
/**
 * false: as if nothing fitted.
 */
enabled?: boolean
/**
 * The topic of this query's events; absent: the service's events topic.
 */
output_topic?: (string | null)
/**
 * Copied into every event of the query.
 */
tags?: {
[k: string]: string | boolean | number
}
feed: string
region: Region
/**
 * Which borders belong to a box, in every dimension; other shapes have no choice.
 */
bounds?: ("[)" | "[]" | "(]" | "()")
/**
 * The only streams watched; absent: all.
 */
streams?: ([string, ...(string)[]] | null)
kind: "border"
/**
 * Whether streams already inside get an event when the query is put or edited.
 */
initial?: ("emit" | "silent")
/**
 * Whether a region that a stream only jumped over gets a + and a -, with interpolated times.
 */
passes?: boolean
/**
 * The silence of a stream that ends its membership.
 */
stream_ttl?: (string | null)
/**
 * A region around `region` that must be left; absent: `region`.
 */
exit_region?: (Region | null)
/**
 * How long a stream must stay inside before its `+` is emitted.
 */
stay_for?: string
/**
 * How long a stream must stay away before its `-` is emitted.
 */
away_for?: string
/**
 * How long after a + of a stream no other visit of that stream is emitted.
 */
cooldown?: string
/**
 * After so many events of a stream, no more of that stream are emitted.
 */
max_events?: (number | null)
}
/**
 * What a query watches: exactly one of the four.
 */
export interface Region {
/**
 * [lo, hi] for each dimension named; null: unbounded; a dimension not named: unbounded. Longitudes with lo > hi go over the antimeridian.
 */
box?: ({
/**
 * @minItems 2
 * @maxItems 2
 */
[k: string]: [(number | null), (number | null)]
} | null)
/**
 * One ring of [x, y], closed or not.
 */
polygon?: ([number, number][] | null)
circle?: (Circle | null)
/**
 * A Polygon or a MultiPolygon of RFC 7946, or a Feature of one.
 */
geojson?: ({
[k: string]: unknown
} | null)
}
/**
 * All points within a distance; its rim belongs to it.
 */
export interface Circle {
/**
 * [x, y], in the order of the feed's dimensions.
 * 
 * @minItems 2
 * @maxItems 2
 */
center: [number, number]
/**
 * In the unit of the dimensions; in metres on a feed with space = "lonlat".
 */
radius: number
}
}
export type BorderDefinition = BorderDefinitionWire.BorderDefinition;

export namespace CrossingEventWire {
/**
 * One stream entered or left the region of one query.
 */
export interface CrossingEvent {
/**
 * The same after a replay: drop repeats by it.
 */
event_id: string
feed: string
stream_id: string
/**
 * Epoch milliseconds of the reading; of the stream's last one where a command caused the event; of the moment of expiry; or, of a pass, where the straight line between two readings meets the region.
 */
event_time: number
/**
 * The stream's value in each dimension of the feed.
 */
value: {
[k: string]: number
}
kind: "border"
reason: ("moved" | "first_seen" | "query_registered" | "query_updated" | "query_deleted" | "query_expired" | "stream_expired")
previous?: Previous
/**
 * The region was entered and left between two readings.
 */
pass?: true
/**
 * Epoch milliseconds at which `stay_for` or `away_for` was over.
 */
confirmed_time?: number
query_id: string
query_version: number
/**
 * + entered, - left
 */
sign: ("+" | "-")
/**
 * The tags of the query.
 */
tags: {
[k: string]: string | boolean | number
}
[k: string]: unknown
}
/**
 * Only with reason `moved`.
 */
export interface Previous {
/**
 * Epoch milliseconds.
 */
event_time: number
value: {
[k: string]: number
}
[k: string]: unknown
}
}
export type CrossingEvent = CrossingEventWire.CrossingEvent;

export namespace LevelEventWire {
/**
 * One reading inside the region of a match query, or that satisfies a select query; the same under both layouts.
 */
export interface LevelEvent {
/**
 * The same after a replay: drop repeats by it.
 */
event_id: string
feed: string
stream_id: string
/**
 * Epoch milliseconds of the reading; of the stream's last one where a command caused the event; of the moment of expiry; or, of a pass, where the straight line between two readings meets the region.
 */
event_time: number
/**
 * The stream's value in each dimension of the feed.
 */
value: {
[k: string]: number
}
kind: ("match" | "select")
query_id: string
query_version: number
/**
 * The tags of the query.
 */
tags: {
[k: string]: string | boolean | number
}
[k: string]: unknown
}
}
export type LevelEvent = LevelEventWire.LevelEvent;

export namespace MatchDefinitionWire {
/**
 * A query of kind `match`: an event for every reading inside a region.
 */
export interface MatchDefinition {
/**
 * Attributes of the feed and what a reading must have in each: a value, or any of a list. null: no such attribute. Of a join, "left.NAME" and "right.NAME".
 */
where?: {
[k: string]: string | boolean | number | [(string | boolean | number | number | null), ...((string | boolean | number | number | null))[]] | null
}
/**
 * The query ends so long after it was put or edited, by the feed's clock.
 */
ttl?: (string | null)
/**
 * The event time at which the query ends: RFC 3339, or epoch milliseconds from 10^11 on.
 */
expires_at?: (number | string | null)
/**
 * false: as if nothing fitted.
 */
enabled?: boolean
/**
 * The topic of this query's events; absent: the service's events topic.
 */
output_topic?: (string | null)
/**
 * Copied into every event of the query.
 */
tags?: {
[k: string]: string | boolean | number
}
feed: string
region: Region
/**
 * Which borders belong to a box, in every dimension; other shapes have no choice.
 */
bounds?: ("[)" | "[]" | "(]" | "()")
/**
 * The only streams watched; absent: all.
 */
streams?: ([string, ...(string)[]] | null)
kind: "match"
}
/**
 * What a query watches: exactly one of the four.
 */
export interface Region {
/**
 * [lo, hi] for each dimension named; null: unbounded; a dimension not named: unbounded. Longitudes with lo > hi go over the antimeridian.
 */
box?: ({
/**
 * @minItems 2
 * @maxItems 2
 */
[k: string]: [(number | null), (number | null)]
} | null)
/**
 * One ring of [x, y], closed or not.
 */
polygon?: ([number, number][] | null)
circle?: (Circle | null)
/**
 * A Polygon or a MultiPolygon of RFC 7946, or a Feature of one.
 */
geojson?: ({
[k: string]: unknown
} | null)
}
/**
 * All points within a distance; its rim belongs to it.
 */
export interface Circle {
/**
 * [x, y], in the order of the feed's dimensions.
 * 
 * @minItems 2
 * @maxItems 2
 */
center: [number, number]
/**
 * In the unit of the dimensions; in metres on a feed with space = "lonlat".
 */
radius: number
}
}
export type MatchDefinition = MatchDefinitionWire.MatchDefinition;

export namespace ReadingEventWire {
/**
 * Everything that one reading, one command or one expiry changed for one stream; under `layout = "reading"`.
 */
export interface ReadingEvent {
/**
 * The same after a replay: drop repeats by it.
 */
event_id: string
feed: string
stream_id: string
/**
 * Epoch milliseconds of the reading; of the stream's last one where a command caused the event; of the moment of expiry; or, of a pass, where the straight line between two readings meets the region.
 */
event_time: number
/**
 * The stream's value in each dimension of the feed.
 */
value: {
[k: string]: number
}
kind: "border"
reason: ("moved" | "first_seen" | "query_registered" | "query_updated" | "query_deleted" | "query_expired" | "stream_expired")
previous?: Previous
/**
 * The region was entered and left between two readings.
 */
pass?: true
/**
 * Epoch milliseconds at which `stay_for` or `away_for` was over.
 */
confirmed_time?: number
/**
 * Query ids.
 */
entered: string[]
/**
 * Query ids.
 */
left: string[]
[k: string]: unknown
}
/**
 * Only with reason `moved`.
 */
export interface Previous {
/**
 * Epoch milliseconds.
 */
event_time: number
value: {
[k: string]: number
}
[k: string]: unknown
}
}
export type ReadingEvent = ReadingEventWire.ReadingEvent;

export namespace ReplyWire {
export type Reply = (EffectiveReply | DegradedReply | RejectedReply)
/**
 * Why a control command was rejected, or events go to another topic; fixed by docs/wire-format.md.
 */
export type ControlCode = ("not_json" | "unknown_kind" | "unknown_field" | "unknown_feed" | "unknown_dimension" | "unknown_query" | "missing_field" | "wrong_type" | "bad_region" | "bad_duration" | "bad_option" | "over_limit" | "forbidden")

/**
 * The command, or the end of the query, is in effect from the first reading at or behind `feed_offsets`.
 */
export interface EffectiveReply {
query_id: string
status: ("accepted" | "unchanged" | "deleted" | "expired")
/**
 * control_offset + 1
 */
version: number
control_offset: number
/**
 * The micro-batch that read the command.
 */
batch: number
/**
 * The next offset of each partition, by feed, when the command took effect.
 */
feed_offsets: {
[k: string]: {
[k: string]: number
}
}
[k: string]: unknown
}
/**
 * The query is in effect, but its events go to the events topic, because its own topic cannot be used.
 */
export interface DegradedReply {
query_id: string
status: "degraded"
/**
 * control_offset + 1
 */
version: number
control_offset: number
/**
 * The micro-batch that read the command.
 */
batch: number
/**
 * The next offset of each partition, by feed, when the command took effect.
 */
feed_offsets: {
[k: string]: {
[k: string]: number
}
}
error: Fault
[k: string]: unknown
}
/**
 * Why a command was refused, or why events go to another topic.
 */
export interface Fault {
code: ControlCode
message: string
[k: string]: unknown
}
/**
 * The command changed nothing.
 */
export interface RejectedReply {
query_id: string
status: "rejected"
control_offset: number
/**
 * The micro-batch that read the command.
 */
batch: number
error: Fault
[k: string]: unknown
}
}
export type Reply = ReplyWire.Reply;

export namespace SelectDefinitionWire {
/**
 * A query of kind `select`: an event for every reading that satisfies any of several conjunctions.
 */
export interface SelectDefinition {
/**
 * Attributes of the feed and what a reading must have in each: a value, or any of a list. null: no such attribute. Of a join, "left.NAME" and "right.NAME".
 */
where?: {
[k: string]: string | boolean | number | [(string | boolean | number | number | null), ...((string | boolean | number | number | null))[]] | null
}
/**
 * The query ends so long after it was put or edited, by the feed's clock.
 */
ttl?: (string | null)
/**
 * The event time at which the query ends: RFC 3339, or epoch milliseconds from 10^11 on.
 */
expires_at?: (number | string | null)
/**
 * false: as if nothing fitted.
 */
enabled?: boolean
/**
 * The topic of this query's events; absent: the service's events topic.
 */
output_topic?: (string | null)
/**
 * Copied into every event of the query.
 */
tags?: {
[k: string]: string | boolean | number
}
feed: string
kind: "select"
/**
 * Conjunctions, any of which is to hold: dimensions and attributes of the feed, each with the interval that it must be in. An attribute that is no number is in none.
 * 
 * @minItems 1
 */
any: [{
/**
 * @minItems 2
 * @maxItems 3
 */
[k: string]: never[]
}, ...({
/**
 * @minItems 2
 * @maxItems 3
 */
[k: string]: never[]
})[]]
}
}
export type SelectDefinition = SelectDefinitionWire.SelectDefinition;

export namespace TransitionDefinitionWire {
/**
 * A query of kind `transition`: an event where a stream went in and out of a region in one of four patterns.
 */
export interface TransitionDefinition {
/**
 * Attributes of the feed and what a reading must have in each: a value, or any of a list. null: no such attribute. Of a join, "left.NAME" and "right.NAME".
 */
where?: {
[k: string]: string | boolean | number | [(string | boolean | number | number | null), ...((string | boolean | number | number | null))[]] | null
}
/**
 * The query ends so long after it was put or edited, by the feed's clock.
 */
ttl?: (string | null)
/**
 * The event time at which the query ends: RFC 3339, or epoch milliseconds from 10^11 on.
 */
expires_at?: (number | string | null)
/**
 * false: as if nothing fitted.
 */
enabled?: boolean
/**
 * The topic of this query's events; absent: the service's events topic.
 */
output_topic?: (string | null)
/**
 * Copied into every event of the query.
 */
tags?: {
[k: string]: string | boolean | number
}
feed: string
region: Region
/**
 * Which borders belong to a box, in every dimension; other shapes have no choice.
 */
bounds?: ("[)" | "[]" | "(]" | "()")
/**
 * The only streams watched; absent: all.
 */
streams?: ([string, ...(string)[]] | null)
kind: "transition"
/**
 * in_then_out: entered and left within the time. in_not_out: entered and stayed for the time. The other two begin outside.
 */
pattern: ("in_then_out" | "out_then_in" | "in_not_out" | "out_not_in")
/**
 * The time of the pattern.
 */
within: string
}
/**
 * What a query watches: exactly one of the four.
 */
export interface Region {
/**
 * [lo, hi] for each dimension named; null: unbounded; a dimension not named: unbounded. Longitudes with lo > hi go over the antimeridian.
 */
box?: ({
/**
 * @minItems 2
 * @maxItems 2
 */
[k: string]: [(number | null), (number | null)]
} | null)
/**
 * One ring of [x, y], closed or not.
 */
polygon?: ([number, number][] | null)
circle?: (Circle | null)
/**
 * A Polygon or a MultiPolygon of RFC 7946, or a Feature of one.
 */
geojson?: ({
[k: string]: unknown
} | null)
}
/**
 * All points within a distance; its rim belongs to it.
 */
export interface Circle {
/**
 * [x, y], in the order of the feed's dimensions.
 * 
 * @minItems 2
 * @maxItems 2
 */
center: [number, number]
/**
 * In the unit of the dimensions; in metres on a feed with space = "lonlat".
 */
radius: number
}
}
export type TransitionDefinition = TransitionDefinitionWire.TransitionDefinition;

export namespace TransitionEventWire {
/**
 * Two crossings within a time, or one that no other followed in it; the same under both layouts.
 */
export interface TransitionEvent {
/**
 * The same after a replay: drop repeats by it.
 */
event_id: string
feed: string
stream_id: string
/**
 * Epoch milliseconds of the reading; of the stream's last one where a command caused the event; of the moment of expiry; or, of a pass, where the straight line between two readings meets the region.
 */
event_time: number
/**
 * The stream's value in each dimension of the feed.
 */
value: {
[k: string]: number
}
kind: "transition"
query_id: string
query_version: number
pattern: ("in_then_out" | "out_then_in" | "in_not_out" | "out_not_in")
/**
 * Epoch milliseconds of the first crossing; `event_time` is that of the end.
 */
began: number
/**
 * The tags of the query.
 */
tags: {
[k: string]: string | boolean | number
}
[k: string]: unknown
}
}
export type TransitionEvent = TransitionEventWire.TransitionEvent;

export namespace WindowJoinDefinitionWire {
/**
 * A query of kind `window_join`: an event for each pair of readings in sliding windows that fits.
 */
export interface WindowJoinDefinition {
/**
 * Attributes of the feed and what a reading must have in each: a value, or any of a list. null: no such attribute. Of a join, "left.NAME" and "right.NAME".
 */
where?: {
[k: string]: string | boolean | number | [(string | boolean | number | number | null), ...((string | boolean | number | number | null))[]] | null
}
/**
 * The query ends so long after it was put or edited, by the feed's clock.
 */
ttl?: (string | null)
/**
 * The event time at which the query ends: RFC 3339, or epoch milliseconds from 10^11 on.
 */
expires_at?: (number | string | null)
/**
 * false: as if nothing fitted.
 */
enabled?: boolean
/**
 * The topic of this query's events; absent: the service's events topic.
 */
output_topic?: (string | null)
/**
 * Copied into every event of the query.
 */
tags?: {
[k: string]: string | boolean | number
}
kind: "window_join"
left: WindowSide
right: WindowSide
/**
 * Conjunctions, any of which is to hold of a pair.
 * 
 * @minItems 1
 */
any: [JoinConjunction, ...(JoinConjunction)[]]
/**
 * A field of each side, with equal values: a dimension, an attribute, or what names the streams.
 */
equal?: (Fields | null)
}
/**
 * One input of a window join.
 */
export interface WindowSide {
/**
 * A feed with join = true.
 */
feed: string
/**
 * How long its readings are joined, or for how many readings of the feed that follow.
 */
window: (string | number)
}
/**
 * What must hold of a pair: bands, and intervals of single fields.
 */
export interface JoinConjunction {
/**
 * ["left.NAME", "right.NAME", lo, hi]: the left one less the right one is in it.
 */
band?: ([never[], ...(never[])[]] | null)
/**
 * @minItems 2
 * @maxItems 3
 */
[k: string]: never[] | [never[], ...(never[])[]] | null | undefined
}
/**
 * A field of each side of a join.
 */
export interface Fields {
left: string
right: string
}
}
export type WindowJoinDefinition = WindowJoinDefinitionWire.WindowJoinDefinition;

export namespace WindowJoinEventWire {
/**
 * Two readings within the windows of a window join that fit.
 */
export interface WindowJoinEvent {
/**
 * The same after a replay: drop repeats by it.
 */
event_id: string
query_id: string
query_version: number
/**
 * Epoch milliseconds: the later of the two readings, or the moment of an expiry.
 */
event_time: number
/**
 * The tags of the query.
 */
tags: {
[k: string]: string | boolean | number
}
kind: "window_join"
left: JoinedReading
right: JoinedReading
[k: string]: unknown
}
/**
 * The reading of one side of a join.
 */
export interface JoinedReading {
feed: string
stream_id: string
/**
 * Epoch milliseconds.
 */
event_time: number
/**
 * The stream's value in each dimension of the feed.
 */
value: {
[k: string]: number
}
[k: string]: unknown
}
}
export type WindowJoinEvent = WindowJoinEventWire.WindowJoinEvent;
