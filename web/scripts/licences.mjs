// Writes the licences of everything that the built files contain beside them, as these licences demand.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const MODULES = new URL("../node_modules/", import.meta.url);
const BUNDLED = ["maplibre-gl", "topojson-client", "uplot", "world-atlas"];

const names = new Set();
function add(name) {
  if (names.has(name) || name.startsWith("@types/") || !existsSync(new URL(`${name}/package.json`, MODULES))) return;
  names.add(name);
  const { dependencies = {} } = JSON.parse(readFileSync(new URL(`${name}/package.json`, MODULES), "utf8"));
  Object.keys(dependencies).forEach(add);
}
BUNDLED.forEach(add);

const parts = [...names].sort().map((name) => {
  const folder = new URL(`${name}/`, MODULES);
  const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
  const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
  const text = file ? readFileSync(new URL(file, folder), "utf8").trim() : `Licence: ${license}`;
  return `${"=".repeat(80)}\n${name} ${version} (${license})\n${"=".repeat(80)}\n\n${text}\n`;
});
const intro = "What the files of this folder contain besides BMQ's own. The map is Natural Earth, in the public domain.\n\n";
writeFileSync(new URL("../../service/bmq/view/static/licences.txt", import.meta.url), intro + parts.join("\n"));
