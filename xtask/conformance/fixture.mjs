// The MCP server that the suite's server scenarios run against: what they expect of a server, on the TypeScript SDK.
//
//   PORT=0 ERAS=both|sessions|stateless ASKS=result|call node fixture.mjs
//
// One description of tools, resources and prompts serves both versions of the protocol: 2025-11-25 with sessions, and
// 2026-07-28 without. A handler that needs the client's input returns `inputRequired`; in a session the SDK turns that
// into requests to the client. With ASKS=call, the tools of 2025-11-25 send these requests themselves while a call runs,
// as the SDK's own conformance server and most servers do; 2026-07-28 has no such requests.

import { randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from "@modelcontextprotocol/node";
import {
  CLIENT_CAPABILITIES_META_KEY,
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  inputResponse,
  isLegacyRequest,
} from "@modelcontextprotocol/server";

const { PORT = "0", ERAS = "both", ASKS = "result" } = process.env;

// Long enough for a client to receive two notifications as two, as the suite's descriptions have it.
const STEP_MS = 50;
// After this time a client returns to a stream that the server closed.
const RETRY_MS = 500;

// One red pixel, and a WAV header without samples.
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

// Blocks of content and their results.

const text = (text) => ({ type: "text", text });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const audio = { type: "audio", data: WAV, mimeType: "audio/wav" };
const resource = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const content = (...blocks) => ({ content: blocks });
const messages = (...blocks) => ({ messages: blocks.map((content) => ({ role: "user", content })) });

// Schemas.

const object = (properties, required = Object.keys(properties)) => ({ type: "object", properties, required });
const string = (description) => ({ type: "string", description });
const options = (...names) => names.map(([value, title]) => ({ const: value, title }));

// The client's input.

/** Signs the state of a request that waits for input, so that a client cannot change it. */
const states = createRequestStateCodec({ key: randomBytes(32) });

const elicit = (message, properties, required) => {
  const request = inputRequired.elicit({ message, requestedSchema: object(properties, required) });
  return { kind: "elicit", request };
};
const sample = (prompt, maxTokens) => {
  const messages = [{ role: "user", content: text(prompt) }];
  return { kind: "sampling", request: inputRequired.createMessage({ messages, maxTokens }) };
};
const roots = { kind: "roots", request: inputRequired.listRoots() };

const NAME = { name: { type: "string" } };
const USER = { username: string("User's response"), email: string("User's email address") };
const nameForm = elicit("What is your name?", NAME);
const confirmForm = elicit("Please confirm", { ok: { type: "boolean" } });

/** The client's responses to these requests; undefined while one is missing or of another kind. */
function responses(ctx, asked) {
  const found = Object.keys(asked).map((key) => [key, inputResponse(ctx.mcpReq.inputResponses, key)]);
  return found.every(([key, { kind }]) => kind === asked[key].kind) ? Object.fromEntries(found) : undefined;
}

/** The result that requests input, with a state for the next round if there is one. */
async function request(asked, state) {
  const inputRequests = Object.fromEntries(Object.entries(asked).map(([key, { request }]) => [key, request]));
  return inputRequired({ inputRequests, ...(state && { requestState: await states.mint(state) }) });
}

/** A handler that needs responses to these requests, and the state that it sends with them if it has one. */
const asking = (asked, done, state) => async (args, ctx) => {
  const each = typeof asked === "function" ? asked(args, ctx) : asked;
  const found = responses(ctx, each);
  const returned = !state || ctx.mcpReq.requestState()?.step === state.step;
  return found && returned ? done(found) : request(each, state);
};

/** A handler that sends these requests while the call runs. */
const askingInCall = (asked, done) => async (args, ctx) => {
  const each = typeof asked === "function" ? asked(args, ctx) : asked;
  const found = {};
  for (const [key, { kind, request }] of Object.entries(each)) {
    const result = await ctx.mcpReq.send(request);
    found[key] = kind === "sampling" ? { kind, result } : { kind, ...result };
  }
  return done(found);
};

const asks = ASKS === "call" ? askingInCall : asking;

const said = ({ result }) => [result.content].flat().map((block) => block.text).join("");
const elicited = ({ action, content }) => `action=${action}, content=${JSON.stringify(content ?? {})}`;
const uris = ({ roots }) => roots.map((root) => root.uri).join(", ");
const completed = ({ form }) => content(text(`Elicitation completed: ${elicited(form)}`));

/** Two questions, the second after the response to the first. */
async function twoRounds(_, ctx) {
  const first = { step1: elicit("Step 1: What is your name?", NAME) };
  const second = { step2: elicit("Step 2: What is your favorite color?", { color: { type: "string" } }) };
  const state = ctx.mcpReq.requestState();
  if (state?.step === 2) {
    const found = responses(ctx, second);
    if (!found) return request(second, state);
    return content(text(`${state.name} likes ${found.step2.content?.color}.`));
  }
  const found = state && responses(ctx, first);
  return found ? request(second, { step: 2, name: found.step1.content?.name }) : request(first, { step: 1 });
}

/** Requests only the kinds of input that the client has declared. */
function declared(_, ctx) {
  const capabilities = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
  const all = { elicitation: nameForm, sampling: sample("Say hello", 50), roots };
  return Object.fromEntries(Object.entries(all).filter(([capability]) => capabilities[capability]));
}

// What else tools do.

async function log(_, ctx) {
  for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
    await ctx.mcpReq.log("info", line);
    await sleep(STEP_MS);
  }
  return content(text("The tool logged three lines."));
}

async function progress(_, ctx) {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    const params = { progressToken, progress, total: 100 };
    if (progressToken !== undefined) await ctx.mcpReq.notify({ method: "notifications/progress", params });
    await sleep(STEP_MS);
  }
  return content(text("The tool is done."));
}

/** Closes the stream before it answers: the client has to come back for the result. */
async function reconnection(_, ctx) {
  ctx.http?.closeSSE?.();
  await sleep(STEP_MS);
  return content(text("The client came back."));
}

function fail() {
  throw new Error("This tool intentionally returns an error for testing");
}

const SCHEMA_2020_12 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const ENUMS = elicit("Please choose", {
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: {
    type: "string",
    oneOf: options(["value1", "First Option"], ["value2", "Second Option"], ["value3", "Third Option"]),
  },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
  titledMulti: {
    type: "array",
    items: { anyOf: options(["value1", "First Choice"], ["value2", "Second Choice"], ["value3", "Third Choice"]) },
  },
}, []);

const DEFAULTS = elicit("Check the defaults", {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
}, []);

/** Requests a confirmation, and takes it only with the signed state. */
const confirmed = asking({ confirm: confirmForm }, () => content(text("state-ok")), { step: 1 });

/** Name, description, handler of arguments and context, and the schema of the arguments if there are any. */
const tools = (notify) => [
  ["test_simple_text", "Returns text", () => content(text("This is a simple text response for testing."))],
  ["test_image_content", "Returns an image", () => content(image)],
  ["test_audio_content", "Returns audio", () => content(audio)],
  [
    "test_embedded_resource",
    "Returns a resource",
    () => content(resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
  ],
  [
    "test_multiple_content_types",
    "Returns text, an image and a resource",
    () => {
      const json = JSON.stringify({ test: "data", value: 123 });
      const embedded = resource("test://mixed-content-resource", "application/json", json);
      return content(text("Multiple content types test:"), image, embedded);
    },
  ],
  ["test_tool_with_logging", "Logs three lines", log],
  ["test_logging_tool", "Logs three lines, if the request has a log level", log],
  ["test_tool_with_progress", "Reports progress", progress],
  ["test_error_handling", "Fails", fail],
  ["test_reconnection", "Closes its stream before it answers", reconnection],
  [
    "json_schema_2020_12_tool",
    "Has a schema with the keywords of JSON Schema 2020-12",
    (contact) => content(text(JSON.stringify(contact))),
    SCHEMA_2020_12,
  ],
  [
    "test_custom_header",
    "Has an argument that is also a header",
    ({ region }) => content(text(region)),
    object({ region: { type: "string", "x-mcp-header": "Region" } }),
  ],
  [
    "test_trigger_tool_change",
    "Announces a change of the tools",
    () => {
      notify.toolsChanged();
      return content(text("announced"));
    },
  ],
  [
    "test_trigger_prompt_change",
    "Announces a change of the prompts",
    () => {
      notify.promptsChanged();
      return content(text("announced"));
    },
  ],
  [
    "test_sampling",
    "Requests a completion",
    asks(
      ({ prompt }) => ({ answer: sample(prompt, 100) }),
      ({ answer }) => content(text(`LLM response: ${said(answer)}`)),
    ),
    object({ prompt: string("The prompt to send to the LLM") }),
  ],
  [
    "test_missing_capability",
    "Requests a completion, which a client must have declared",
    asking({ answer: sample("Say hello", 50) }, ({ answer }) => content(text(said(answer)))),
  ],
  [
    "test_elicitation",
    "Requests the user's input",
    asks(
      ({ message }) => ({ user: elicit(message, USER) }),
      ({ user }) => content(text(`User response: ${elicited(user)}`)),
    ),
    object({ message: string("The message to show the user") }),
  ],
  [
    "test_streaming_elicitation",
    "Requests a confirmation",
    asking({ confirm: confirmForm }, ({ confirm }) => content(text(elicited(confirm)))),
  ],
  ["test_elicitation_sep1034_defaults", "Requests input that has defaults", asks({ form: DEFAULTS }, completed)],
  ["test_elicitation_sep1330_enums", "Requests input of each kind of enum", asks({ form: ENUMS }, completed)],
  [
    "test_input_required_result_elicitation",
    "Requests a name",
    asking({ user_name: nameForm }, ({ user_name }) => content(text(`Hello, ${user_name.content?.name}!`))),
  ],
  [
    "test_input_required_result_sampling",
    "Requests a completion",
    asking(
      { capital_question: sample("What is the capital of France?", 100) },
      ({ capital_question }) => content(text(said(capital_question))),
    ),
  ],
  [
    "test_input_required_result_list_roots",
    "Requests the roots",
    asking({ client_roots: roots }, ({ client_roots }) => content(text(uris(client_roots)))),
  ],
  ["test_input_required_result_request_state", "Requests a confirmation, with a state", confirmed],
  ["test_input_required_result_tampered_state", "Requests a confirmation, with a state", confirmed],
  [
    "test_input_required_result_multiple_inputs",
    "Requests a name, a completion and the roots",
    asking(
      { user_name: nameForm, greeting: sample("Generate a greeting", 50), client_roots: roots },
      (found) => content(text(`${said(found.greeting)} ${elicited(found.user_name)} ${uris(found.client_roots)}`)),
      { step: 1 },
    ),
  ],
  ["test_input_required_result_multi_round", "Requests a name, then a color", twoRounds],
  [
    "test_input_required_result_capabilities",
    "Requests the kinds of input that the client has declared",
    asking(declared, (found) => content(text(Object.keys(found).join(", ")))),
  ],
];

/** As the tools. */
const prompts = [
  ["test_simple_prompt", "A text", () => messages(text("This is a simple prompt for testing."))],
  [
    "test_prompt_with_arguments",
    "A text with two arguments",
    ({ arg1, arg2 }) => messages(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
    object({ arg1: string("First test argument"), arg2: string("Second test argument") }),
  ],
  [
    "test_prompt_with_embedded_resource",
    "A resource and a text",
    ({ resourceUri }) => {
      const embedded = resource(resourceUri, "text/plain", "Embedded resource content for testing.");
      return messages(embedded, text("Please process the embedded resource above."));
    },
    object({ resourceUri: string("URI of the resource to embed") }),
  ],
  ["test_prompt_with_image", "An image and a text", () => messages(image, text("Please analyze the image above."))],
  [
    "test_input_required_result_prompt",
    "A text about a context, which it requests",
    asking(
      { user_context: elicit("What context should the prompt use?", { context: { type: "string" } }) },
      ({ user_context }) => messages(text(`Context: ${user_context.content?.context}`)),
    ),
  ],
];

/** The SDK passes arguments only to a handler that has a schema. */
const callback = (run, schema) => (schema ? run : (ctx) => run({}, ctx));

/** A server for one session, or for one request, whose changes `notify` announces. */
function fixture(notify) {
  const server = new McpServer({ name: "toolcrib-conformance-fixture", version: "1.0.0" }, {
    capabilities: { completions: {}, logging: {}, resources: { subscribe: true } },
    requestState: { verify: states.verify },
  });
  for (const [name, description, run, schema] of tools(notify ?? changes(server))) {
    server.registerTool(name, { description, inputSchema: schema && fromJsonSchema(schema) }, callback(run, schema));
  }
  for (const [name, description, run, schema] of prompts) {
    server.registerPrompt(name, { description, argsSchema: schema && fromJsonSchema(schema) }, callback(run, schema));
  }

  const read = (uri, mimeType, more) => ({ contents: [{ uri: uri.href, mimeType, ...more }] });
  const texts = { description: "A text", mimeType: "text/plain" };
  server.registerResource("static-text", "test://static-text", texts, (uri) =>
    read(uri, "text/plain", { text: "This is the content of the static text resource." }));
  const images = { description: "An image", mimeType: "image/png" };
  server.registerResource("static-binary", "test://static-binary", images, (uri) =>
    read(uri, "image/png", { blob: PNG }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  const records = { description: "The record of an id", mimeType: "application/json" };
  server.registerResource("template", template, records, (uri, { id }) => {
    const record = { id, templateTest: true, data: `Data for ID: ${id}` };
    return read(uri, "application/json", { text: JSON.stringify(record) });
  });

  const low = server.server;
  // No resource ever changes: a subscription has no effect.
  low.setRequestHandler("resources/subscribe", () => ({}));
  low.setRequestHandler("resources/unsubscribe", () => ({}));
  low.setRequestHandler("completion/complete", ({ params }) => {
    const values = ["paris", "park", "party"].filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return server;
}

/** Announcements on the stream of a session. */
const changes = (server) => ({
  toolsChanged: () => server.sendToolListChanged(),
  promptsChanged: () => server.sendPromptListChanged(),
});

/** The messages of a session, to which a client may return. */
class Events {
  #events = [];

  async storeEvent(stream, message) {
    this.#events.push({ stream, message });
    return String(this.#events.length - 1);
  }

  async getStreamIdForEventId(id) {
    return this.#events[Number(id)]?.stream;
  }

  async replayEventsAfter(last, { send }) {
    const { stream } = this.#events[Number(last)];
    for (const [id, event] of this.#events.entries()) {
      if (id > Number(last) && event.stream === stream) await send(String(id), event.message);
    }
    return stream;
  }
}

/** Serves 2025-11-25: a server and a transport for each session. */
function sessions() {
  const open = new Map();
  return async (request) => {
    const id = request.headers.get("mcp-session-id");
    if (id && !open.has(id)) {
      const error = { code: -32001, message: "Session not found" };
      return Response.json({ jsonrpc: "2.0", error, id: null }, { status: 404 });
    }
    if (id) return open.get(id).handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new Events(),
      retryInterval: RETRY_MS,
      onsessioninitialized: (id) => void open.set(id, transport),
      onsessionclosed: (id) => void open.delete(id),
    });
    await fixture().connect(transport);
    return transport.handleRequest(request);
  };
}

/** Serves 2026-07-28: a server for each request. */
function stateless() {
  const handler = createMcpHandler(() => fixture(handler.notify), { legacy: "reject" });
  return handler.fetch;
}

function serve(eras) {
  if (eras === "sessions") return sessions();
  if (eras === "stateless") return stateless();
  const [older, newer] = [sessions(), stateless()];
  return async (request) => ((await isLegacyRequest(request)) ? older(request) : newer(request));
}

const handle = toNodeHandler({ fetch: serve(ERAS) });
const [validHost, validOrigin] = [localhostHostValidation(), localhostOriginValidation()];
const server = createServer((request, response) => {
  if (!validHost(request, response) || !validOrigin(request, response)) return;
  if (request.url === "/mcp") handle(request, response);
  else response.writeHead(404).end();
});
server.listen(Number(PORT), "127.0.0.1", () => {
  console.log(`endpoint: http://127.0.0.1:${server.address().port}/mcp`);
});
