// @ts-expect-error: node without its types
import { createServer } from "node:http";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { connect, fetchEvents, refusalOf } from "../src/connection";
import { Store } from "../src/store";

const SETUP = { feeds: {}, tiles: "", tiles_credit: "", members_exact: true, read_only: false };
const UPDATE = { feeds: {}, queries: [], gone: [], events: [], missed: 0, dead: [] };

interface Answer {
  writeHead(status: number): void;
  write(text: string): void;
  end(text: string): void;
}
interface Server {
  listen(port: number, host: string, done: () => void): void;
  address(): { port: number };
  close(): void;
  closeAllConnections(): void;
}

let server: Server | null = null;

/** Starts a server on this machine and returns its address. */
async function serve(answer: (response: Answer) => void): Promise<string> {
  const started = createServer((_: unknown, response: Answer) => answer(response)) as Server;
  server = started;
  await new Promise<void>((done) => started.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${started.address().port}/`;
}

/** Node has no EventSource; the tests say what a browser would. */
class Source extends EventTarget {
  static readonly CLOSED = 2;
  static opened: Source[] = [];
  readyState = 0;

  constructor(readonly url: string) {
    super();
    Source.opened.push(this);
  }

  close(): void {
    this.readyState = Source.CLOSED;
  }

  send(name: string, data: unknown): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }

  refuse(): void {
    this.readyState = Source.CLOSED;
    this.dispatchEvent(new Event("error"));
  }
}

beforeEach(() => {
  Source.opened = [];
  vi.stubGlobal("EventSource", Source);
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  server?.closeAllConnections();
  server?.close();
  server = null;
});

describe("a slow link", () => {
  test("has a minute for the first update, also after the setup, and six seconds for the next ones", () => {
    connect(new Store());
    vi.advanceTimersByTime(20_000);
    Source.opened[0]?.send("setup", SETUP);
    vi.advanceTimersByTime(50_000);
    expect(Source.opened).toHaveLength(1);
    Source.opened[0]?.send("update", UPDATE);
    vi.advanceTimersByTime(5_000);
    expect(Source.opened).toHaveLength(1);
    vi.advanceTimersByTime(4_000);
    expect(Source.opened).toHaveLength(2);
  });

  test("has a minute again after the browser itself connected anew", () => {
    connect(new Store());
    Source.opened[0]?.send("update", UPDATE);
    Source.opened[0]?.send("setup", SETUP);
    vi.advanceTimersByTime(50_000);
    expect(Source.opened).toHaveLength(1);
    vi.advanceTimersByTime(14_000);
    expect(Source.opened).toHaveLength(2);
  });
});

describe("a refusal", () => {
  const message = "The token is missing or wrong.";

  test("is shown with the reason of the server until the page is connected", async () => {
    const address = await serve((response) => {
      response.writeHead(401);
      response.end(JSON.stringify({ error: { code: "refused", message } }));
    });
    const store = new Store();
    connect(store, address);
    expect(Source.opened[0]?.url).toBe(`${address}api/updates`);
    Source.opened[0]?.refuse();
    await vi.waitFor(() => expect(store.refusal).toBe(message));
    vi.advanceTimersByTime(2_000);
    Source.opened[1]?.send("setup", SETUP);
    expect([store.connected, store.refusal]).toEqual([true, ""]);
  });

  test("of a proxy has no reason, so the status is shown", async () => {
    const address = await serve((response) => {
      response.writeHead(502);
      response.end("<html>Bad Gateway</html>");
    });
    expect(await refusalOf(address)).toBe("The server answers with the status 502.");
  });

  test("is none if the server sends the endless stream, or does not answer", async () => {
    const address = await serve((response) => {
      response.writeHead(200);
      response.write("retry: 1000\n\n");
    });
    expect(await refusalOf(address)).toBe("");
    server?.closeAllConnections();
    server?.close();
    expect(await refusalOf(address)).toBe("");
  });
});

test("a filter without an answer has no events, and not an empty list of them", async () => {
  const filter = { query: "", stream: "", kind: "", feed: "" };
  expect(await fetchEvents(filter)).toBeNull(); // the address is relative, and node has no page that it belongs to
});
