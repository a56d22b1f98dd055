// Writes two files beside the built ones; tests/unit/view/test_built_page.py compares them with what is there.
//
//   sources.sha256   the digest of everything that the built files are made of: nobody changes a source alone
//   built.sha256     the digest of each built file, as sha256sum writes it: nobody changes a built file alone
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../", import.meta.url);
const STATIC = new URL("service/bmq/view/static/", ROOT);
const SOURCES = [
  "web/src",
  "web/scripts",
  "web/index.html",
  "web/package.json",
  "web/package-lock.json",
  "web/tsconfig.json",
  "web/vite.config.ts",
  "docs/schemas",
];
const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...SOURCES], { cwd: ROOT });
const sources = createHash("sha256");
for (const name of listed.toString().trim().split("\n").sort()) {
  sources.update(`${name}\n`);
  sources.update(readFileSync(new URL(name, ROOT)));
}
writeFileSync(new URL("sources.sha256", STATIC), sources.digest("hex") + "\n");

const built = readdirSync(STATIC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !entry.name.endsWith(".sha256"))
  .map((entry) => relative(fileURLToPath(STATIC), join(entry.parentPath, entry.name)))
  .sort();
const lines = built.map((name) => `${createHash("sha256").update(readFileSync(new URL(name, STATIC))).digest("hex")}  ${name}\n`);
writeFileSync(new URL("built.sha256", STATIC), lines.join(""));
