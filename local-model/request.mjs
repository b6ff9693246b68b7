// The body of `POST /v1/chat/completions`: what it asks for, or why it is refused.

import { readMessages } from "./messages.mjs";
import { badRequest, Refusal } from "./refusal.mjs";
import { count, flag, list, object, oneOf, onlyKeys, optional, string } from "./shape.mjs";

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** A small model that does not find its end would go on until its context is full. */
const DEFAULT_MAX_TOKENS = 512;

const USED = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "n",
];

/** What may stand there, because it changes nothing here: one call at most, and always the same. */
const HARMLESS = [
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "seed",
    "store",
    "user",
];

export function readRequest(value, modelId) {
    const body = object(value, "body");
    onlyKeys(body, [...USED, ...HARMLESS], "");
    checkModel(string(body.model, "model"), modelId);
    checkSampling(body);
    const stream = optional(body.stream, flag, "stream", false);
    const tools = optional(body.tools, list, "tools", []).map(readTool);
    refuseTwins(tools);
    return {
        messages: readMessages(body.messages, "messages"),
        tools,
        choice: readChoice(body.tool_choice ?? "auto", tools),
        maxTokens: readMaxTokens(body),
        stream,
        includeUsage: readIncludeUsage(body.stream_options, stream),
    };
}

function checkModel(asked, served) {
    if (asked === served) return;
    const message = `model: there is no model "${asked}"; this server has "${served}"`;
    throw new Refusal(404, message, { param: "model", code: "model_not_found" });
}

function checkSampling(body) {
    if ((body.temperature ?? 0) !== 0) throw badRequest("temperature", "must be 0 or absent");
    if ((body.n ?? 1) !== 1) throw badRequest("n", "must be 1 or absent");
}

function readMaxTokens(body) {
    const [newer, older] = ["max_completion_tokens", "max_tokens"].map((key) =>
        optional(body[key], count, key),
    );
    if (newer !== undefined && older !== undefined) {
        throw badRequest("max_tokens", "must not stand beside max_completion_tokens");
    }
    return newer ?? older ?? DEFAULT_MAX_TOKENS;
}

function readIncludeUsage(value, stream) {
    const options = optional(value, object, "stream_options", undefined);
    if (options === undefined) return false;
    if (!stream) throw badRequest("stream_options", 'needs "stream": true');
    onlyKeys(options, ["include_usage"], "stream_options");
    return optional(options.include_usage, flag, "stream_options.include_usage", false);
}

function readTool(value, index) {
    const at = `tools[${index}]`;
    const tool = object(value, at);
    onlyKeys(tool, ["type", "function"], at);
    oneOf(tool.type, ["function"], `${at}.type`);
    const of = object(tool.function, `${at}.function`);
    onlyKeys(of, ["name", "description", "parameters", "strict"], `${at}.function`);
    const name = string(of.name, `${at}.function.name`);
    if (!TOOL_NAME.test(name)) {
        throw badRequest(`${at}.function.name`, "must be 1 to 64 of a-z A-Z 0-9 _ -");
    }
    return {
        name,
        description: optional(of.description, string, `${at}.function.description`, ""),
        schema: optional(of.parameters, object, `${at}.function.parameters`, { type: "object" }),
        at: `${at}.function.parameters`,
    };
}

function refuseTwins(tools) {
    const names = tools.map((tool) => tool.name);
    const twin = names.find((name, index) => names.indexOf(name) !== index);
    if (twin !== undefined) throw badRequest("tools", `two are called "${twin}"`);
}

/** `{ kind: "auto" | "none" | "required", tools }`; one that is named is the only one required. */
function readChoice(value, tools) {
    if (typeof value === "object") return { kind: "required", tools: [namedTool(value, tools)] };
    const kind = oneOf(value, ["auto", "none", "required"], "tool_choice");
    if (kind === "required" && tools.length === 0) throw badRequest("tool_choice", "needs tools");
    return { kind: tools.length === 0 ? "none" : kind, tools: kind === "none" ? [] : tools };
}

function namedTool(value, tools) {
    const choice = object(value, "tool_choice");
    onlyKeys(choice, ["type", "function"], "tool_choice");
    oneOf(choice.type, ["function"], "tool_choice.type");
    const name = string(
        object(choice.function, "tool_choice.function").name,
        "tool_choice.function.name",
    );
    const named = tools.find((tool) => tool.name === name);
    if (named === undefined)
        throw badRequest("tool_choice.function.name", `"${name}" is none of the tools`);
    return named;
}
