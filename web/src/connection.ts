// The stream of updates, and the commands.

import type { EventFilter } from "./eventList";
import type { Details, Fault, Setup, ShownEvent, Update } from "./protocol";
import type { Store } from "./store";

const SILENCE_MS = 6000; // the server sends four updates a second, also if nothing changes
const FIRST_UPDATE_MS = 60_000; // the first update holds everything, some megabytes: a slow link needs its time
const LOOK_EVERY_MS = 2000;

/** Applies the server's updates to the store, over every lost connection; `base` is the address of the page. */
export function connect(store: Store, base = ""): void {
  const address = `${base}api/updates`;
  let source: EventSource | null = null;
  let last = performance.now();
  let hasUpdate = false;

  const open = (): void => {
    source?.close();
    const opened = new EventSource(address);
    source = opened;
    last = performance.now();
    hasUpdate = false;
    opened.addEventListener("setup", (event) => {
      // A browser also connects by itself, and then the server sends everything once more.
      last = performance.now();
      hasUpdate = false;
      store.begin(JSON.parse((event as MessageEvent<string>).data) as Setup);
    });
    opened.addEventListener("update", (event) => {
      last = performance.now();
      hasUpdate = true;
      store.apply(JSON.parse((event as MessageEvent<string>).data) as Update, last);
    });
    opened.addEventListener("error", () => {
      if (store.connected) store.setConnected(false);
      if (opened.readyState !== EventSource.CLOSED) {
        if (store.refusal) store.setRefusal(""); // now the server does not answer at all
        return;
      }
      void refusalOf(address).then((message) => store.connected || store.setRefusal(message));
    });
  };
  open();
  setInterval(() => {
    // A browser gives up after some answers, such as those of a proxy whose server is away.
    const patience = hasUpdate ? SILENCE_MS : FIRST_UPDATE_MS;
    if (source?.readyState !== EventSource.CLOSED && performance.now() - last < patience) return;
    if (store.connected) store.setConnected(false);
    open();
  }, LOOK_EVERY_MS);
}

/** Returns why the server refuses a request, or "" if it does not, or does not answer: an EventSource shows no reason. */
export async function refusalOf(address: string): Promise<string> {
  const end = new AbortController();
  try {
    const response = await fetch(address, { cache: "no-store", signal: end.signal });
    if (response.ok) return "";
    const answer = (await response.json().catch(() => null)) as { error?: { message?: unknown } } | null;
    const message = answer?.error?.message;
    return typeof message === "string" ? message : `The server answers with the status ${response.status}.`;
  } catch {
    return "";
  } finally {
    end.abort(); // the answer may be the endless stream of updates
  }
}

export interface Replied {
  ok: boolean;
  status: string;
  version: number | null;
  error: Fault | null;
}

export async function putQuery(id: string, definition: unknown): Promise<Replied> {
  return command("PUT", id, JSON.stringify(definition));
}

export async function deleteQuery(id: string): Promise<Replied> {
  return command("DELETE", id, null);
}

async function command(method: string, id: string, body: string | null): Promise<Replied> {
  try {
    const response = await fetch(`api/query?${new URLSearchParams({ id })}`, {
      method,
      body,
      headers: { "X-BMQ": "1", "Content-Type": "application/json" },
    });
    const answer = (await response.json()) as { status?: string; version?: number; error?: Fault };
    return {
      ok: response.ok,
      status: answer.status ?? "refused",
      version: answer.version ?? null,
      error: answer.error ?? null,
    };
  } catch (error) {
    return { ok: false, status: "unreachable", version: null, error: { code: "unreachable", message: String(error) } };
  }
}

export async function fetchDetails(id: string): Promise<Details | null> {
  try {
    const response = await fetch(`api/query?${new URLSearchParams({ id })}`);
    return response.ok ? ((await response.json()) as Details) : null;
  } catch {
    return null;
  }
}

/** Returns the events that fit a filter; null if the server did not answer. */
export async function fetchEvents(filter: EventFilter): Promise<ShownEvent[] | null> {
  try {
    const response = await fetch(`api/events?${new URLSearchParams({ ...filter })}`);
    return response.ok ? ((await response.json()) as { events: ShownEvent[] }).events : null;
  } catch {
    return null;
  }
}
