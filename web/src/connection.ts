// The stream of updates, and the commands.

import type { Details, Fault, Setup, ShownEvent, Update } from "./protocol";
import type { Store } from "./store";

const SILENCE_MS = 6000; // the server sends four updates a second, also if nothing changes

export function connect(store: Store): void {
  let source: EventSource | null = null;
  let last = performance.now();

  const open = (): void => {
    source?.close();
    source = new EventSource("api/updates");
    last = performance.now();
    source.addEventListener("setup", (event) => {
      last = performance.now();
      store.begin(JSON.parse((event as MessageEvent<string>).data) as Setup);
    });
    source.addEventListener("update", (event) => {
      last = performance.now();
      store.apply(JSON.parse((event as MessageEvent<string>).data) as Update, last);
    });
    source.addEventListener("error", () => store.connected && store.setConnected(false));
  };
  open();
  setInterval(() => {
    // A browser gives up after some answers, such as those of a proxy whose server is away.
    if (source?.readyState !== EventSource.CLOSED && performance.now() - last < SILENCE_MS) return;
    if (store.connected) store.setConnected(false);
    open();
  }, 2000);
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

export async function fetchEvents(filter: { query: string; stream: string; kind: string; feed: string }): Promise<ShownEvent[]> {
  try {
    const response = await fetch(`api/events?${new URLSearchParams(filter)}`);
    return response.ok ? ((await response.json()) as { events: ShownEvent[] }).events : [];
  } catch {
    return [];
  }
}
