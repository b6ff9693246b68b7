// Runs the official MCP conformance suite and prints its results as JSON.
//
//   node run.mjs TOOLCRIB COLUMN…
//
// A column is `client`, or SERVER/ERAS: `direct`, `gateway`, `replicas` (two gateways that share the PostgreSQL database
// of the variable DATABASE, and get the requests in turns) or `fastmcp`, with a fixture that speaks `both` eras, only
// `sessions` (2025-11-25) or only `stateless` (2026-07-28); SERVER/ERAS/call with one that asks while a call runs. Each
// runs for both requirement sets, or with @SET for one. Everything started here ends with this program, which itself
// ends at the latest with its standard input.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { relay } from "./relay.mjs";

const SUITE = "node_modules/@modelcontextprotocol/conformance";
const SETS = ["2025-11-25", "2026-07-28"];
const [toolcrib, ...columns] = process.argv.slice(2);

const CLIENT_SKILLS = ["no-prefetch", "verify-digest", "verify-size", "verify-frontmatter"].map((name) => `client-${name}`);

// A fixture, a gateway and a Python proxy start in seconds; a scenario ends after the suite's own 30 seconds.
const START_SECONDS = 60;
const SUITE_SECONDS = 300;

const scratch = mkdtempSync(join(tmpdir(), "toolcrib-conformance-"));
const env = { ...process.env, XDG_STATE_HOME: scratch, XDG_CONFIG_HOME: scratch, TOOLCRIB: toolcrib };
const running = new Set();

function start(program, args, more = {}) {
  // A separate process group: what the program starts can be ended with it.
  const child = spawn(program, args, {
    detached: true,
    env: { ...env, ...more },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  child.text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => (child.text += text));
  }
  child.on("error", (error) => fail(`${program}: ${error.message}`));
  return child;
}

function end(child) {
  running.delete(child);
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

function cleanUp() {
  running.forEach(end);
  rmSync(scratch, { recursive: true, force: true });
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

process.on("exit", cleanUp);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(130));
process.stdin.on("end", () => process.exit(130)).resume();

/** Waits for a pattern in a program's output. */
function says(child, pattern) {
  return new Promise((resolve, reject) => {
    const stop = (why) => reject(new Error(`${child.spawnargs.join(" ")} ${why}\n${child.text}`));
    const timer = setTimeout(() => stop(`did not print ${pattern} in ${START_SECONDS} s`), START_SECONDS * 1000);
    const look = () => {
      const found = pattern.exec(child.text);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[1]);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("close", (code) => stop(`ended with ${code}`));
    look();
  });
}

/** The URL of what the server scenarios run against, and the programs to end afterward. */
async function serve(server, eras, asks = "result") {
  const fixture = start(process.execPath, ["fixture.mjs"], { PORT: "0", ERAS: eras, ASKS: asks });
  const upstream = await says(fixture, /endpoint: (\S+)\n/);
  if (server === "direct") return [upstream, () => end(fixture)];
  if (server === "fastmcp") {
    const proxy = start("fastmcp/venv/bin/python", ["proxy.py", upstream]);
    return [`${await says(proxy, /running on (http\S+) /)}/mcp`, () => [proxy, fixture].forEach(end)];
  }
  if (server === "replicas") {
    const [url, stop] = await replicas(upstream);
    return [url, () => [stop(), end(fixture)]];
  }
  const servers = join(scratch, `${server}-${eras}-${asks}.json`);
  writeFileSync(servers, JSON.stringify({ mcpServers: { fixture: { url: upstream } } }));
  const [url, stop] = await gateway(["--no-project", "--import", servers], "mcp__fixture__");
  return [url, () => [stop(), end(fixture)]];
}

/** The URL of a gateway of these servers or this project, and what ends it. */
async function gateway(args, prefix) {
  const program = start(toolcrib, ["serve", ...args, "--http", "0", "--show-token"]);
  return behindRelay([program], await says(program, /token (\S{32,})\n/), prefix);
}

/** The URL of two gateways with separate homes, and what ends them. */
async function replicas(upstream) {
  const project = mkdtempSync(join(scratch, "replicas-"));
  const [token, key] = [0, 1].map(() => randomBytes(32).toString("hex"));
  const names = ["STORE", "MARKS", "KEY", "TOKEN"];
  const secrets = names.map((name) => `${name} = { env = "CONFORMANCE_${name}" }\n`).join("");
  const file = `policy_default = "allow"
[secrets]
${secrets}[sessions]
store = "secret:STORE"
[approvals]
key = "secret:KEY"
marks = "secret:MARKS"
[[serve.token]]
secret = "secret:TOKEN"
principal = "${token.slice(0, 8)}"
[mcp.fixture]
url = "${upstream}"
`;
  writeFileSync(join(project, "toolcrib.toml"), file);
  // Another database that each cluster has.
  const [store, marks] = ["postgres", "template1"].map((name) => process.env.DATABASE.replace("/postgres?", `/${name}?`));
  const variables = [store, marks, key, token].map((value, at) => [`CONFORMANCE_${names[at]}`, value]);
  const programs = ["one", "two"].map((name) => {
    const home = join(project, name);
    const own = { ...Object.fromEntries(variables), HOME: home, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home };
    return start(toolcrib, ["serve", "-p", project, "--http", "0"], own);
  });
  return behindRelay(programs, token, "mcp__fixture__");
}

/** The URL of a relay before gateways, and what ends all of them. */
async function behindRelay(programs, token, prefix) {
  const urls = await Promise.all(programs.map(async (program) => new URL(await says(program, /serving (\S+)\s/))));
  const front = await relay(urls, token, prefix);
  const stop = () => {
    front.close();
    front.closeAllConnections();
    programs.forEach(end);
  };
  return [`http://127.0.0.1:${front.address().port}${urls[0].pathname}`, stop];
}

/** The scenarios of SEP-2640 for a side, which no requirement set has. */
async function ofSkills(names, args) {
  const verdicts = [];
  for (const scenario of names.map((name) => `sep-2640-${name}`)) {
    const output = await suite([...args, "--scenario", scenario]);
    const [, passed, failed] = /^Passed: (\d+)\/\d+, (\d+) failed/mu.exec(output) ?? [];
    if (!passed) throw new Error(`the suite has no verdict on ${scenario}:\n${output}`);
    const ok = Number(passed) > 0 && Number(failed) === 0 && !output.includes("Client exited with code");
    verdicts.push({ scenario, scored: false, ok, passed: Number(passed), failed: Number(failed) });
    if (process.env.VERBOSE) console.error(output);
  }
  return verdicts;
}

/** The server scenarios, on a project with a skill. */
async function skills() {
  const project = mkdtempSync(join(scratch, "skills-"));
  const folder = join(project, "skills", "pdf-forms");
  mkdirSync(join(folder, "references", "forms"), { recursive: true });
  writeFileSync(join(project, "toolcrib.toml"), 'name = "skills"\n[skills]\nfolder = "skills"\n');
  writeFileSync(join(folder, "SKILL.md"), "---\nname: pdf-forms\ndescription: Fills PDF forms.\n---\nFill them.\n");
  writeFileSync(join(folder, "references", "forms", "tax.md"), "# Tax\n");
  const [url, stop] = await gateway(["-p", project], "");
  const names = ["skills-enumeration", "skills-manifest", "skills-directory"];
  const verdicts = await ofSkills(names, ["server", "--url", url]);
  stop();
  return verdicts;
}

/** The output of the suite for one requirement set. */
function suite(args) {
  const child = start(process.execPath, [`${SUITE}/dist/index.js`, ...args, "--output-dir", join(scratch, "results")]);
  return new Promise((resolve, reject) => {
    const late = `the suite took more than ${SUITE_SECONDS} s\n`;
    const timer = setTimeout(() => reject(new Error(late + child.text)), SUITE_SECONDS * 1000);
    child.on("close", () => {
      clearTimeout(timer);
      end(child);
      resolve(child.text);
    });
  });
}

/** The scenarios of a requirement set, with the suite's verdicts. */
function results(set, leg, output) {
  const verdicts = [...output.matchAll(/^(✓|✗) (\S+): (\d+) passed, (\d+) failed/gmu)];
  const required = parse(readFileSync(`${SUITE}/requirements/${set}.yaml`, "utf8"));
  const extra = required.not_scored.filter((entry) => entry.leg === leg).map((entry) => entry.scenario);
  return [...required[leg], ...extra].map((scenario) => {
    const verdict = verdicts.find(([, , name]) => name === scenario);
    if (!verdict) throw new Error(`the suite has no verdict on ${scenario}:\n${output}`);
    const [, mark, , passed, failed] = verdict;
    const scored = required[leg].includes(scenario);
    return { scenario, scored, ok: mark === "✓", passed: Number(passed), failed: Number(failed) };
  });
}

async function run(columnOfSets) {
  const [column, onlySet] = columnOfSets.split("@");
  const [server, eras, asks] = column.split("/");
  const leg = server === "client" ? "client" : "server";
  const found = [];
  for (const set of onlySet ? [onlySet] : SETS) {
    const began = Date.now();
    // A fresh server for each set: no state of the last one is left.
    const [url, stop] = leg === "server" ? await serve(server, eras, asks) : [undefined, () => {}];
    const target = leg === "server" ? ["--url", url] : ["--command", `"${process.execPath}" client.mjs`];
    const output = await suite([leg, ...target, "--requirements", set]);
    stop();
    const scenarios = results(set, leg, output);
    if (set === "2026-07-28") {
      if (column === "gateway/both") scenarios.push(...(await skills()));
      if (leg === "client") scenarios.push(...(await ofSkills(CLIENT_SKILLS, [leg, ...target])));
    }
    const scored = scenarios.filter((each) => each.scored);
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    console.error(`${set} ${column}: ${scored.filter((each) => each.ok).length}/${scored.length} (${seconds} s)`);
    if (process.env.VERBOSE) console.error(output);
    found.push({ set, column, scenarios });
  }
  return found;
}

try {
  // Two columns at a time: most of a run is waiting.
  const waiting = [...columns];
  const found = [];
  const worker = async () => {
    for (let column = waiting.shift(); column; column = waiting.shift()) found.push(...(await run(column)));
  };
  await Promise.all([worker(), worker()]);
  // A pipe takes only a part at once; an exit before the end would cut the results.
  process.stdout.write(`${JSON.stringify(found)}\n`, () => process.exit(0));
} catch (error) {
  fail(error.message);
}
