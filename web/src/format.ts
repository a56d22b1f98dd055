// Numbers and times for people.

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const WHOLE = new Intl.NumberFormat("en");

export function clock(epochMs: number): string {
  return TIME.format(epochMs);
}

export function whole(value: number): string {
  return WHOLE.format(Math.round(value));
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`;
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toFixed(unit && value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** At most six digits: what differs between two readings is seen, and a position stays short. */
export function short(value: number): string {
  return String(Number(value.toPrecision(7)));
}
