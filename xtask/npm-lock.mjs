// Writes the package-lock.json of a folder, by npm: `node xtask/npm-lock.mjs FOLDER`. Versions that it has already stay: delete it for
// newer ones. `npm ci` reads versions, digests and dependencies, so nothing else is kept, and what fits is on one line.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const COLUMNS = 120;
const UNREAD = ["engines", "funding", "license"];

function lines(value, indent, used) {
  const whole = JSON.stringify(value);
  if (typeof value !== "object" || indent.length + used + whole.length <= COLUMNS) return whole;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const inner = `${indent}  `;
  const entries = Object.entries(value).map(([name, entry]) => {
    const key = open === "{" ? `${JSON.stringify(name)}: ` : "";
    return inner + key + lines(entry, inner, key.length + 1);
  });
  return `${open}\n${entries.join(",\n")}\n${indent}${close}`;
}

const folder = process.argv[2];
const npm = ["install", "--package-lock-only", "--omit-lockfile-registry-resolved", "--ignore-scripts", "--no-audit", "--no-fund"];
execFileSync("npm", npm, { cwd: folder, stdio: "inherit" });
const path = join(folder, "package-lock.json");
const lock = JSON.parse(readFileSync(path, "utf8"));
for (const entry of Object.values(lock.packages)) UNREAD.forEach((key) => delete entry[key]);
writeFileSync(path, `${lines(lock, "", 0)}\n`);
