import { expect, test } from "vitest";
import written from "../src/wire.ts?raw";
// @ts-expect-error: a script of node without types
import { wireTypes } from "../scripts/types.mjs";

test("the types of the messages are those of the schemas", async () => {
  expect(await wireTypes(), "docs/schemas have changed: npm run types").toBe(written);
});
