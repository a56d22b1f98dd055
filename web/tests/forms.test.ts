import { describe, expect, test } from "vitest";
import { fieldOf } from "../src/errorField";
import { type FormField, fieldsOf, KINDS, MAIN, textOf, valueOf } from "../src/formFields";

describe("fields of the form", () => {
  test("every kind has all fields of its schema but the kind, each with a way to enter it", () => {
    for (const [kind, schema] of Object.entries(KINDS)) {
      const fields = fieldsOf(kind);
      expect(fields.map(({ name }) => name).sort()).toEqual(Object.keys(schema.properties ?? {}).filter((name) => name !== "kind").sort());
      for (const field of fields.filter(({ required }) => required)) expect(MAIN, field.name).toContain(field.name);
    }
  });

  test("a schema's types become inputs", () => {
    const inputs = Object.fromEntries(fieldsOf("border").map(({ name, input }) => [name, input]));
    expect(inputs).toMatchObject({
      feed: "text",
      region: "json",
      streams: "json",
      stay_for: "text",
      passes: "flag",
      enabled: "flag",
      initial: "choice",
      bounds: "choice",
      max_events: "number",
      tags: "json",
    });
    expect(fieldsOf("transition").find(({ name }) => name === "pattern")?.choices).toContain("in_then_out");
  });

  test("a kind that does not exist has no fields", () => {
    expect(fieldsOf("nonsense")).toEqual([]);
  });
});

describe("a value in its field and back", () => {
  const spec = (name: string): FormField => {
    const found = fieldsOf("border").find((field) => field.name === name);
    if (!found) throw new Error(name);
    return found;
  };
  const unchanged = (name: string, value: unknown): unknown => valueOf(spec(name), textOf(spec(name), value), value);

  test.each([
    ["expires_at", 1_767_225_600_000],
    ["expires_at", "2026-01-01T00:00:00Z"],
    ["ttl", "30d"],
    ["max_events", 5],
    ["streams", ["AAPL"]],
    ["region", { polygon: [[0, 0], [1, 0], [1, 1.5]] }],
    ["exit_region", { circle: { center: [0, 0], radius: 5 } }],
    ["initial", "quiet"],
  ])("%s stays %j", (name, value) => expect(unchanged(name, value)).toEqual(value));

  test("null is as absent as a field that is not there", () => {
    for (const { name } of fieldsOf("border")) expect([textOf(spec(name), null), unchanged(name, null)], name).toEqual(["", undefined]);
  });

  test("a moment that was a number may become a text, and a text that has digits stays one", () => {
    expect(valueOf(spec("expires_at"), "2027-01-01T00:00:00Z", 1_767_225_600_000)).toBe("2027-01-01T00:00:00Z");
    expect(valueOf(spec("feed"), "12", "12")).toBe("12");
    expect(valueOf(spec("ttl"), "30", 5)).toBe("30");
  });

  test("what is no number and no JSON is for the service and the form to refuse", () => {
    expect(valueOf(spec("max_events"), "many", undefined)).toBe("many");
    expect(() => valueOf(spec("region"), "{", undefined)).toThrow(SyntaxError);
  });

  test("a value that the service has rejected has a text, too", () => {
    expect(textOf(spec("feed"), { toString: 5, valueOf: 5 })).toContain("toString");
  });
});

describe("the field that an error is about", () => {
  const fields = ["id", "feed", "region", "stay_for", "exit_region", "tags"];
  test.each([
    [{ code: "bad_region", message: "Field 'region.polygon' has no area." }, "region"],
    [{ code: "bad_duration", message: "Field 'stay_for' is \"3\", but has no unit." }, "stay_for"],
    [{ code: "bad_region", message: "Field 'exit_region' does not hold all of 'region'." }, "exit_region"],
    [{ code: "unknown_feed", message: "Feed \"x\" is not configured. Known here: 'a'." }, "feed"],
    [{ code: "unknown_dimension", message: "Feed 'a' has no dimension \"z\"." }, "region"],
    [{ code: "unknown_field", message: "Field 'regoin' is not known. Did you mean 'region'?" }, ""],
    [{ code: "not_json", message: "The value is empty." }, ""],
    [{ code: "wrong_type", message: "The key is too long." }, "id"],
  ])("%o", (fault, field) => expect(fieldOf(fault, fields)).toBe(field));
});
