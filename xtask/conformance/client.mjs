// The suite's client scenarios, done with `toolcrib mcp test`, `toolcrib mcp call` and `toolcrib menu`.
//
//   TOOLCRIB=PROGRAM MCP_CONFORMANCE_SCENARIO=NAME node client.mjs URL

import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const url = process.argv[2];
const { TOOLCRIB, XDG_STATE_HOME, MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context } = process.env;
const servers = join(mkdtempSync(join(XDG_STATE_HOME, "client-")), "servers.json");
writeFileSync(servers, JSON.stringify({ mcpServers: { suite: { url } } }));

let code = 0;

function toolcrib(...args) {
  const done = spawnSync(TOOLCRIB, [...args, "--no-project", "--import", servers, "--json"], { encoding: "utf8" });
  process.stderr.write(done.stderr);
  code ||= done.status ?? 1;
  return done.stdout && JSON.parse(done.stdout);
}

const test = () => toolcrib("mcp", "test", "suite");
const call = (tool, args = {}, ...flags) => toolcrib("mcp", "call", "suite", tool, JSON.stringify(args), ...flags);
const menu = () => toolcrib("menu").offered;
const own = (tool) => tool.name.replace("mcp__suite__", "");

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
};

(scenarios[scenario] ?? (() => call("test-tool")))();
process.exit(code);
