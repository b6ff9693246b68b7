// The official TypeScript SDKs as a client: does what its caller says, step by step, and prints what
// came of it. Arguments and output are those of client.py. TOOLCRIB_PEERS names the folder that the
// SDKs are installed in. Mode "legacy" is SDK 1, which speaks up to 2025-11-25; all else is SDK 2.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const PATIENCE_MS = 60_000;

const job = JSON.parse(process.argv[2]);
const resolve = createRequire(`${process.env.TOOLCRIB_PEERS}/package.json`).resolve;
const load = (name) => import(pathToFileURL(resolve(name)).href);

const sdk = job.mode === "legacy" ? await sdk1() : await sdk2();

let heardOfChange;
const changed = new Promise((done) => (heardOfChange = done));
await sdk.connect(heardOfChange, transport());

const steps = [];
for (const step of job.steps) steps.push(await within(does(step)));
console.log(JSON.stringify({ protocol: sdk.protocol(), steps }));
await sdk.client.close();
process.exit(0);

async function sdk1() {
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
  const { StreamableHTTPClientTransport: Http } = await load(
    "@modelcontextprotocol/sdk/client/streamableHttp.js",
  );
  const { ToolListChangedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");
  const client = new Client({ name: "sdk1", version: "1" });
  let protocol;
  return {
    client,
    StdioClientTransport,
    Http,
    async connect(heard, transport) {
      client.setNotificationHandler(ToolListChangedNotificationSchema, heard);
      const tell = transport.setProtocolVersion?.bind(transport);
      transport.setProtocolVersion = (version) => {
        protocol = version;
        tell?.(version);
      };
      await client.connect(transport);
    },
    protocol: () => protocol,
    call: (params, options) => client.callTool(params, undefined, options),
  };
}

async function sdk2() {
  const { Client, StreamableHTTPClientTransport: Http } = await load("@modelcontextprotocol/client");
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  const mode = job.mode === "auto" ? "auto" : { pin: job.mode };
  const client = new Client({ name: "sdk2", version: "1" }, { versionNegotiation: { mode } });
  return {
    client,
    StdioClientTransport,
    Http,
    async connect(heard, transport) {
      client.setNotificationHandler("notifications/tools/list_changed", heard);
      await client.connect(transport);
    },
    protocol: () => client.getNegotiatedProtocolVersion(),
    call: (params, options) => client.callTool(params, options),
  };
}

function transport() {
  if (job.command) {
    const [command, ...args] = job.command;
    return new sdk.StdioClientTransport({ command, args });
  }
  const headers = { Authorization: `Bearer ${job.token}` };
  return new sdk.Http(new URL(job.url), { requestInit: { headers } });
}

async function does(step) {
  const params = { name: step.name, arguments: step.arguments };
  switch (step.do) {
    case "list":
      return list(new Set(step.until));
    case "call":
      return call(params);
    case "cancel":
      return cancel(params);
    case "change":
      await changed;
      return { changed: true };
    default:
      throw new Error(`there is no step ${step.do}`);
  }
}

// Lists the tools, again and again until all names of `until` are in the list.
async function list(until) {
  for (;;) {
    const tools = (await sdk.client.listTools()).tools.map((tool) => tool.name);
    if ([...until].every((name) => tools.includes(name))) return { tools };
    await new Promise((done) => setTimeout(done, 100));
  }
}

async function call(params) {
  const progress = [];
  const onprogress = (said) => progress.push([said.progress, said.total ?? null]);
  try {
    const result = await sdk.call(params, { onprogress });
    const texts = result.content.filter((block) => block.type === "text");
    return {
      text: texts.map((block) => block.text).join("\n"),
      kinds: result.content.map((block) => block.type),
      structured: result.structuredContent ?? null,
      is_error: result.isError ?? false,
      code: result._meta?.["toolcrib/code"] ?? null,
      progress,
    };
  } catch (error) {
    if (typeof error.code !== "number") throw error;
    return { error: { code: error.code, data: error.data ?? null } };
  }
}

// Calls, and takes it back when the first progress comes.
async function cancel(params) {
  const giveUp = new AbortController();
  const options = { signal: giveUp.signal, onprogress: () => giveUp.abort() };
  try {
    await sdk.call(params, options);
    return { cancelled: false };
  } catch (error) {
    if (!giveUp.signal.aborted) throw error;
    return { cancelled: true };
  }
}

function within(promise) {
  const late = new Promise((_, fail) => {
    setTimeout(() => fail(new Error(`not within ${PATIENCE_MS} ms`)), PATIENCE_MS).unref();
  });
  return Promise.race([promise, late]);
}
