// Writes the digest of everything that the built files are made of beside them; tests/unit/view/test_built_page.py
// compares it with the sources, so that nobody changes one without the other.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const ROOT = new URL("../../", import.meta.url);
const SOURCES = ["web/src", "web/scripts", "web/index.html", "web/vite.config.ts", "web/package-lock.json", "docs/schemas"];
const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...SOURCES], { cwd: ROOT });
const digest = createHash("sha256");
for (const name of listed.toString().trim().split("\n").sort()) {
  digest.update(`${name}\n`);
  digest.update(readFileSync(new URL(name, ROOT)));
}
writeFileSync(new URL("service/bmq/view/static/sources.sha256", ROOT), digest.digest("hex") + "\n");
