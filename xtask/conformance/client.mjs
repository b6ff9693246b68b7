// The suite's client scenarios, done with `toolcrib mcp test`, `toolcrib mcp call`, `toolcrib mcp login` and
// `toolcrib menu`.
//
//   TOOLCRIB=PROGRAM MCP_CONFORMANCE_SCENARIO=NAME node client.mjs URL

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const url = process.argv[2];
const { TOOLCRIB, XDG_STATE_HOME, MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context } = process.env;
const scratch = mkdtempSync(join(XDG_STATE_HOME, "client-"));
const servers = join(scratch, "servers.json");
writeFileSync(servers, JSON.stringify({ mcpServers: { suite: { url } } }));
// Each scenario begins without a login.
const env = { ...process.env, XDG_CONFIG_HOME: join(scratch, "config") };

let code = 0;
let project = ["--no-project", "--import", servers];

function toolcrib(...args) {
  const done = spawnSync(TOOLCRIB, [...args, ...project, "--json"], { encoding: "utf8", env });
  process.stderr.write(done.stderr);
  code ||= done.status ?? 1;
  return done.stdout && JSON.parse(done.stdout);
}

const test = () => toolcrib("mcp", "test", "suite");
const call = (tool, args = {}, ...flags) => toolcrib("mcp", "call", "suite", tool, JSON.stringify(args), ...flags);
const menu = () => toolcrib("menu").offered;
const own = (tool) => tool.name.replace("mcp__suite__", "");

/** Declares the server in a project, with these lines. */
function declare(lines, secrets = "") {
  const folder = join(scratch, "project");
  mkdirSync(folder);
  writeFileSync(join(folder, "toolcrib.toml"), `${secrets}[mcp.suite]\nurl = ${JSON.stringify(url)}\n${lines}\n`);
  project = ["-p", folder];
}

function listSkills() {
  declare("skills = true");
  test();
  if (!menu().some((tool) => own(tool) === "load_skill")) throw new Error("no skill is offered");
}

// The server gives another file than it lists: the skill is not loaded, and neither is a further file.
function refuseSkill() {
  declare("skills = true");
  for (const path of [{}, { path: "references/FORMS.md" }]) {
    code = 0;
    call("load_skill", { name: "pdf-processing", ...path });
    if (code === 0) throw new Error("a skill is loaded that differs from its entry");
  }
  code = 0;
}

const scenarios = {
  initialize: test,
  "request-metadata": test,
  "json-schema-ref-no-deref": test,
  tools_call: () => call("add_numbers", { a: 5, b: 3 }),
  "elicitation-sep1034-client-defaults": () => call("test_client_elicitation_defaults", {}, "--accept-defaults"),
  "sse-retry": () => call("test_reconnection"),
  "http-standard-headers": () => call("test_headers"),
  "http-custom-headers": () => JSON.parse(context).toolCalls.forEach((each) => call(each.name, each.arguments)),
  "http-invalid-tool-headers": () => menu().forEach((tool) => call(own(tool), { region: "us-west1" })),
  "sep-2322-client-request-state": () =>
    ["echo_state", "no_state", "unrelated", "no_result_type"].forEach((flow) =>
      call(`test_mrtr_${flow}`, {}, "--accept-defaults")),
  "json-schema-2020-12-preservation": () => {
    const focal = menu().find((tool) => own(tool) === "json_schema_2020_12_tool");
    call("json_schema_echo", { schema: focal.input_schema });
  },
  "sep-2640-client-no-prefetch": listSkills,
  "sep-2640-client-verify-digest": refuseSkill,
  "sep-2640-client-verify-size": refuseSkill,
  "sep-2640-client-verify-frontmatter": refuseSkill,
};

// An operator knows what was agreed on with an authorization server, and declares it.
function declareAuth(auth) {
  const pairs = Object.entries(auth).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  declare(`auth = { ${pairs.join(", ")} }`, '[secrets]\nCLIENT = { env = "CLIENT_SECRET" }\n');
}

// A browser that consents at once: it follows the redirects. A login that was refused waits for nothing.
function login() {
  const child = spawn(TOOLCRIB, ["mcp", "login", "suite", "--no-browser", ...project], { env });
  let text = "";
  let opened = false;
  child.stderr.setEncoding("utf8").on("data", (more) => {
    process.stderr.write(more);
    text += more;
    const address = /^(https?:\S+)\s/m.exec(text);
    if (address && !opened) {
      opened = true;
      fetch(address[1]).catch((error) => console.error(error.message));
    }
  });
  return new Promise((resolve) => child.on("close", resolve));
}

// The server demands logins: at first, for more scopes, or because its authorization server is another.
async function authorized() {
  const { client_id, client_secret, issuer } = JSON.parse(context ?? "{}");
  env.CLIENT_SECRET = client_secret;
  if (scenario === "auth/basic-cimd") declareAuth({ client_id: "https://conformance-test.local/client-metadata.json" });
  if (scenario === "auth/pre-registration") declareAuth({ client_id, client_secret: "secret:CLIENT", issuer });
  if (scenario === "auth/client-credentials-basic") {
    const metadata = await (await fetch(new URL("/.well-known/oauth-protected-resource/mcp", url))).json();
    const [issuer] = metadata.authorization_servers;
    declareAuth({ grant: "client_credentials", client_id, client_secret: "secret:CLIENT", issuer });
    return call("test-tool");
  }
  const calls = scenario === "auth/authorization-server-migration" ? 2 : 1;
  for (let done = 0, logins = 0; done < calls; ) {
    code = 0;
    call("test-tool");
    if (code === 0) done += 1;
    else if (logins++ === 2 || (await login()) !== 0) return;
  }
}

await (scenarios[scenario] ?? authorized)();
process.exit(code);
