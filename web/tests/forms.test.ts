import { describe, expect, test } from "vitest";
import { fieldOf } from "../src/errorField";
import { fieldsOf, KINDS, MAIN } from "../src/formFields";

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
