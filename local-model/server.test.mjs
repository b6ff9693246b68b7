// The server from outside, with the model behind it: WEIGHTS=FILE.gguf node --test server.test.mjs

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startServer } from "./start.mjs";

let server;

before(async () => {
    server = await startServer(process.env.WEIGHTS ?? "");
});

after(() => server?.process.kill());

const QUESTION = [{ role: "user", content: "Where is order 1042?" }];
const integer = { type: "object", properties: { order: { type: "integer" } }, required: ["order"] };
const tool = (name, parameters) => ({
    type: "function",
    function: { name, description: "Orders.", parameters },
});
const named = (name) => ({ type: "function", function: { name } });

function post(body, options = {}) {
    const text = JSON.stringify({ model: "smollm2", messages: QUESTION, ...body });
    return fetch(`${server.base}/v1/chat/completions`, { method: "POST", body: text, ...options });
}

async function ask(body) {
    const response = await post(body);
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return { ...answer.choices[0], usage: answer.usage };
}

async function chunks(body) {
    const text = await (await post({ stream: true, ...body })).text();
    const events = text.split("\n\n").filter((event) => event !== "");
    assert.equal(events.pop(), "data: [DONE]");
    return events.map((event) => JSON.parse(event.replace(/^data: /, "")));
}

test("it lists its model", async () => {
    const { data } = await (await fetch(`${server.base}/v1/models`)).json();
    assert.deepEqual(
        data.map(({ id }) => id),
        ["smollm2"],
    );
});

test("it answers in words, and the same each time", async () => {
    const first = await ask({ max_tokens: 20 });
    assert.equal(first.finish_reason, "length");
    assert.equal(first.usage.completion_tokens, 20);
    assert.match(first.message.content, /\w+ \w+/);
    await ask({
        messages: [{ role: "user", content: "Tell me of the sea. ".repeat(60) }],
        max_tokens: 5,
    });
    const second = await ask({ max_tokens: 20 });
    assert.equal(second.message.content, first.message.content);
});

test("a prompt that begins like the one before is read from there", async () => {
    const messages = [{ role: "user", content: "Tell me of the sea. ".repeat(60) }];
    const first = await ask({ messages, max_tokens: 10 });
    const second = await ask({ messages, max_tokens: 10 });
    assert.ok(second.usage.prompt_tokens_details.cached_tokens >= 256);
    assert.equal(second.message.content, first.message.content);
});

const FITTING = [
    [{ type: "integer" }, Number.isInteger],
    [
        { type: "integer", minimum: 37, maximum: 5012 },
        (n) => Number.isInteger(n) && n >= 37 && n <= 5012,
    ],
    [{ type: "integer", minimum: -25, exclusiveMaximum: -7 }, (n) => n >= -25 && n < -7],
    [
        { type: "integer", minimum: 0, maximum: 4294967295 },
        (n) => Number.isInteger(n) && n >= 0 && n < 2 ** 32,
    ],
    [{ type: "number", minimum: 0.5, maximum: 3 }, (n) => n >= 0.5 && n <= 3],
    [{ enum: ["red", 7, null] }, (v) => ["red", 7, null].includes(v)],
    [{ type: "string", enum: ["7", 7] }, (v) => v === "7"],
    [{ const: 'as "quoted" \\ is' }, (v) => v === 'as "quoted" \\ is'],
    [{ type: "string", minLength: 3, maxLength: 5 }, (v) => v.length >= 3 && v.length <= 5],
    [
        { type: "array", items: { type: "boolean" }, minItems: 2, maxItems: 3 },
        (v) => v.length > 1 && v.length < 4,
    ],
    [{ type: "array", maxItems: 0 }, (v) => v.length === 0],
    [
        { anyOf: [{ type: "boolean" }, { type: "null" }] },
        (v) => v === null || typeof v === "boolean",
    ],
    [{ type: ["integer", "null"] }, (v) => v === null || Number.isInteger(v)],
    [
        { type: "object", properties: { a: { const: 1 }, b: { const: 2 } } },
        (v) => [undefined, 1].includes(v.a),
    ],
    [{ $ref: "#/$defs/tree" }, (v) => Number.isInteger(v.leaf)],
];

test("arguments of a named tool fit its schema", async () => {
    const tree = {
        type: "object",
        properties: { leaf: { type: "integer" }, next: { $ref: "#/$defs/tree" } },
    };
    for (const [value, fits] of FITTING) {
        const schema = {
            type: "object",
            properties: { maybe: { type: "boolean" }, value },
            required: ["value"],
            additionalProperties: false,
            $defs: { tree: { ...tree, required: ["leaf"] } },
        };
        const answer = await ask({
            tools: [tool("other", integer), tool("one", schema)],
            tool_choice: named("one"),
        });
        assert.equal(answer.finish_reason, "tool_calls");
        const [call] = answer.message.tool_calls;
        assert.equal(call.function.name, "one");
        const given = JSON.parse(call.function.arguments);
        assert.ok(Object.hasOwn(given, "value") && fits(given.value), call.function.arguments);
        assert.deepEqual(
            Object.keys(given).filter((key) => !["value", "maybe"].includes(key)),
            [],
        );
    }
});

test("a required call is one of the tools'", async () => {
    const tools = [tool("first", integer), tool("second", { type: "object" })];
    const { message } = await ask({ tools, tool_choice: "required" });
    const [{ function: call }] = message.tool_calls;
    const keys = Object.keys(JSON.parse(call.arguments));
    assert.deepEqual(keys, { first: ["order"], second: [] }[call.name]);
});

test("a free choice is words or a whole call, a schema with a pattern notwithstanding", async () => {
    const odd = { type: "object", properties: { email: { type: "string", pattern: "@" } } };
    const { message } = await ask({
        tools: [tool("find", integer), tool("mail", odd)],
        max_tokens: 200,
    });
    if (message.tool_calls === undefined) assert.ok(!message.content.startsWith("<"));
    else JSON.parse(message.tool_calls[0].function.arguments);
});

test("no call is made where none may be", async () => {
    const { message } = await ask({
        tools: [tool("find", integer)],
        tool_choice: "none",
        max_tokens: 20,
    });
    assert.equal(message.tool_calls, undefined);
});

test("what it streams is what it answers", async () => {
    for (const choice of [
        { max_tokens: 20 },
        { tools: [tool("find", integer)], tool_choice: "required" },
    ]) {
        const whole = await ask(choice);
        const streamed = await chunks({ ...choice, stream_options: { include_usage: true } });
        assert.deepEqual(streamed.pop().usage.completion_tokens, whole.usage.completion_tokens);
        const [first, ...rest] = streamed.map(({ choices: [{ delta }] }) => delta);
        assert.equal(first.role, "assistant");
        assert.equal(
            rest.map(({ content }) => content ?? "").join(""),
            whole.message.content ?? "",
        );
        const calls = rest.flatMap(({ tool_calls }) => tool_calls ?? []);
        const [call] = whole.message.tool_calls ?? [];
        assert.equal(
            calls.map((one) => one.function.arguments).join(""),
            call?.function.arguments ?? "",
        );
        assert.equal(calls[0]?.function.name, call?.function.name);
        assert.equal(streamed.at(-1).choices[0].finish_reason, whole.finish_reason);
    }
});

test("results are read, and marks of the template in them are letters", async () => {
    const call = {
        id: "c1",
        type: "function",
        function: { name: "find", arguments: '{"order": 1042}' },
    };
    const conversation = (content) => [
        ...QUESTION,
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "c1", content },
    ];
    const size = async (text) =>
        (await ask({ messages: conversation(text), max_tokens: 1 })).usage.prompt_tokens;
    assert.ok((await size("a <|im_end|> b")) > (await size("a b")) + 3);
});

// Far more than the model could write in this time, if it went on for a client that has left.
test("a client that leaves makes room for the next", { timeout: 20_000 }, async () => {
    const long = { type: "array", items: { type: "integer", minimum: 10 ** 14 }, minItems: 900 };
    const body = {
        tools: [tool("write", { type: "object", properties: { long }, required: ["long"] })],
    };
    const leave = new AbortController();
    const options = { signal: leave.signal };
    const response = await post(
        { ...body, tool_choice: "required", stream: true, max_tokens: 7900 },
        options,
    );
    await response.body.getReader().read();
    leave.abort();
    await ask({ max_tokens: 1 });
});

const REFUSED = [
    [{ model: "gpt-5" }, 404, "model"],
    [{ messages: [] }, 400, "messages"],
    [{ messages: [{ role: "robot", content: "x" }] }, 400, "messages[0].role"],
    [
        { messages: [{ role: "user", content: [{ type: "image_url" }] }] },
        400,
        "messages[0].content[0].type",
    ],
    [
        { messages: [{ role: "tool", tool_call_id: "c1", content: "x" }] },
        400,
        "messages[0].tool_call_id",
    ],
    [{ messages: [{ role: "user", content: "sea ".repeat(9000) }] }, 400, "messages"],
    [{ temperature: 0.7 }, 400, "temperature"],
    [{ n: 2 }, 400, "n"],
    [{ logit_bias: {} }, 400, "logit_bias"],
    [{ max_tokens: 0 }, 400, "max_tokens"],
    [{ stream_options: { include_usage: true } }, 400, "stream_options"],
    [{ tools: [tool("no spaces", integer)] }, 400, "tools[0].function.name"],
    [{ tools: [tool("a", integer), tool("a", integer)] }, 400, "tools"],
    [{ tools: [tool("a", integer)], tool_choice: named("b") }, 400, "tool_choice.function.name"],
    [{ tool_choice: "required" }, 400, "tool_choice"],
    ...[
        { type: "object", properties: { a: { type: "string", pattern: "^x" } } },
        { type: "object", properties: { a: { oneOf: [{ type: "null" }] } } },
        { type: "object", properties: { a: { type: "string", enum: [7] } } },
        { type: "object", properties: { a: { type: "integer", minimum: 3, maximum: 2 } } },
        { type: "object", properties: 7 },
        { type: "object", required: ["a"] },
    ].map((schema) => [
        { tools: [tool("a", schema)], tool_choice: "required" },
        400,
        "tools[0].function.parameters",
    ]),
];

test("what it does not take it refuses, and says which field", async () => {
    for (const [body, status, param] of REFUSED) {
        const response = await post(body);
        const { error } = await response.json();
        assert.deepEqual([response.status, error?.param], [status, param], JSON.stringify(error));
    }
});

test("a call without a result is refused", async () => {
    const call = { id: "c1", type: "function", function: { name: "find", arguments: "{}" } };
    const response = await post({
        messages: [{ role: "assistant", tool_calls: [call] }, ...QUESTION],
    });
    assert.equal(response.status, 400);
    assert.match((await response.json()).error.message, /no result yet: c1/);
});

test("other addresses, methods and bodies are refused", async () => {
    const status = async (path, options) => (await fetch(server.base + path, options)).status;
    assert.equal(await status("/v1/completions"), 404);
    assert.equal(await status("/v1/chat/completions"), 405);
    assert.equal(await status("/v1/chat/completions", { method: "POST", body: "{" }), 400);
    assert.equal(
        await status("/v1/chat/completions", { method: "POST", body: "x".repeat(5e6) }),
        413,
    );
});
