// Which field of a definition the service's error is about. Its messages name fields as 'region.box.x'.

import type { Fault } from "./protocol";

const BY_CODE: Record<string, string> = {
  unknown_feed: "feed",
  unknown_kind: "kind",
  unknown_dimension: "region",
  bad_region: "region",
  forbidden: "id",
};

/** Returns the name of the form's field, or "" if the error is about the whole definition. */
export function fieldOf(fault: Fault, fields: readonly string[]): string {
  for (const found of fault.message.matchAll(/[Ff]ield '([^']+)'/g)) {
    const name = (found[1] ?? "").split(/[.[]/)[0] ?? "";
    if (fields.includes(name)) return name;
  }
  if (/query id|The key/.test(fault.message)) return "id";
  const name = BY_CODE[fault.code] ?? "";
  return fields.includes(name) ? name : "";
}
