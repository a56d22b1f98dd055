// Which queries the map and the chart draw. Pure.

import { asDefinition, type Region, regionOf } from "./protocol";
import type { Query } from "./store";

/** Returns whether the service applies a query, as far as its last reply shows. */
export function isInForce({ status }: Pick<Query, "status">): boolean {
  return status !== "rejected" && status !== "expired";
}

/**
 * Returns what `draw` makes of each query that is in force and has a region; null leaves one out.
 *
 * A query that cannot be drawn must not end the page for all others, so an error leaves out that query alone.
 */
export function drawn<T>(queries: Iterable<Query>, draw: (query: Query, region: Region) => T | null): T[] {
  const found: T[] = [];
  for (const query of queries) {
    const region = isInForce(query) ? regionOf(query.definition) : null;
    if (!region) continue;
    try {
      const one = draw(query, region);
      if (one !== null) found.push(one);
    } catch (error) {
      console.error(`The query ${query.id} cannot be drawn.`, error);
    }
  }
  return found;
}

/** Returns the streams that a definition names, or null if it names none. */
export function namedStreams(query: Query): string[] | null {
  const streams = asDefinition(query.definition)?.["streams"];
  return Array.isArray(streams) ? streams.filter((id): id is string => typeof id === "string") : null;
}

/** Returns a text that changes with everything that the map shows of queries, so that it draws them only then. */
export function drawnKey(queries: readonly Query[], selected: string | null): string {
  return JSON.stringify([queries.map(({ id, version, status, members }) => [id, version, status, members > 0]), selected]);
}
