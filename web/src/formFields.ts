// The fields of a form for a definition, from the JSON Schema of its kind. So a new option is in the form by itself.

import bandJoin from "../../docs/schemas/band-join-definition.json";
import border from "../../docs/schemas/border-definition.json";
import match from "../../docs/schemas/match-definition.json";
import select from "../../docs/schemas/select-definition.json";
import transition from "../../docs/schemas/transition-definition.json";
import windowJoin from "../../docs/schemas/window-join-definition.json";

interface SchemaNode {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: SchemaNode[];
  $ref?: string;
  $defs?: Record<string, SchemaNode>;
  description?: string;
  default?: unknown;
  properties?: Record<string, SchemaNode>;
  required?: string[];
}

export type Input = "text" | "number" | "flag" | "choice" | "json";

export interface FormField {
  name: string;
  input: Input;
  choices: string[];
  required: boolean;
  help: string;
  fallback: unknown;
  /** Whether the schema allows a number; a text field may allow one, too. */
  allowsNumber: boolean;
}

export const KINDS = {
  border,
  transition,
  match,
  select,
  band_join: bandJoin,
  window_join: windowJoin,
} as unknown as Record<string, SchemaNode>;

/** Fields that every form shows at once; the others are behind "More options". */
export const MAIN = ["feed", "left", "right", "region", "any", "on", "band", "pattern", "within", "stay_for", "away_for", "tags"];

export function fieldsOf(kind: string): FormField[] {
  const schema = KINDS[kind];
  if (!schema?.properties) return [];
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties)
    .filter(([name]) => name !== "kind")
    .map(([name, node]) => fieldOf(name, node, schema, required.has(name)));
  const rank = (name: string): number => (MAIN.includes(name) ? MAIN.indexOf(name) : MAIN.length);
  return fields.sort((a, b) => rank(a.name) - rank(b.name));
}

function fieldOf(name: string, node: SchemaNode, schema: SchemaNode, required: boolean): FormField {
  const choices = choicesOf(node, schema);
  return {
    name,
    input: choices.length ? "choice" : inputOf(node, schema),
    choices,
    required,
    help: node.description ?? resolved(node, schema).description ?? "",
    fallback: node.default,
    allowsNumber: ["number", "integer"].some((type) => typesOf(node, schema).has(type)),
  };
}

/** Returns the text of a field for a value of a definition; null is as absent as a field that is not there. */
export function textOf(field: FormField, value: unknown): string {
  if (value === undefined || value === null) return "";
  return field.input === "json" || typeof value === "object" ? pretty(value) : String(value);
}

/**
 * Returns the value that a definition gets for the text of a field; undefined for none.
 *
 * `before` is the value of the definition that is edited: an `expires_at` that was a number stays one.
 * Throws SyntaxError if the field takes JSON and the text is no JSON.
 */
export function valueOf(field: FormField, text: string, before: unknown): unknown {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (field.input === "json") return JSON.parse(trimmed);
  const isNumber = field.input === "number" || (field.allowsNumber && typeof before === "number");
  return isNumber && !Number.isNaN(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** Returns JSON with one line a point: a polygon of many corners stays readable. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 1).replace(/\[\s+(-?[\d.eE+]+|null),\s+(-?[\d.eE+]+|null)\s+\]/g, "[$1, $2]");
}

function inputOf(node: SchemaNode, schema: SchemaNode): Input {
  const types = typesOf(node, schema);
  if (types.has("object") || types.has("array")) return "json";
  if (types.has("boolean") && types.size === 1) return "flag";
  if (types.has("string")) return "text";
  return types.has("number") || types.has("integer") ? "number" : "json";
}

function typesOf(node: SchemaNode, schema: SchemaNode): Set<string> {
  const found = new Set<string>();
  for (const one of node.anyOf ?? [node]) {
    const type = resolved(one, schema).type;
    if (type && type !== "null") found.add(type);
  }
  return found;
}

function choicesOf(node: SchemaNode, schema: SchemaNode): string[] {
  return (node.anyOf ?? [node])
    .flatMap((one) => resolved(one, schema).enum ?? [])
    .filter((choice): choice is string => typeof choice === "string");
}

function resolved(node: SchemaNode, schema: SchemaNode): SchemaNode {
  return node.$ref ? (schema.$defs?.[node.$ref.split("/").pop() ?? ""] ?? node) : node;
}
