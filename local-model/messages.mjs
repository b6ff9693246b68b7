// The conversation of a request, held to the rules that the vendor has for it.

import { badRequest } from "./refusal.mjs";
import { list, object, oneOf, onlyKeys, optional, string } from "./shape.mjs";

const KEYS = {
    system: ["role", "content", "name"],
    developer: ["role", "content", "name"],
    user: ["role", "content", "name"],
    assistant: ["role", "content", "name", "refusal", "tool_calls"],
    tool: ["role", "content", "tool_call_id"],
};

/** Messages as `{ role, text, calls }`; a result of a call has `call`, the name of its tool. */
export function readMessages(value, at) {
    const messages = list(value, at);
    if (messages.length === 0) throw badRequest(at, "must not be empty");
    const open = new Map();
    const read = messages.map((message, index) => readMessage(message, `${at}[${index}]`, open));
    refuseOpenCalls(open, at);
    return read;
}

function readMessage(value, at, open) {
    const message = object(value, at);
    const role = oneOf(message.role, Object.keys(KEYS), `${at}.role`);
    onlyKeys(message, KEYS[role], at);
    if (role === "tool") return readResult(message, at, open);
    refuseOpenCalls(open, at);
    if (role === "assistant") return readAssistant(message, at, open);
    const text = readText(message.content, `${at}.content`);
    return { role: role === "developer" ? "system" : role, text, calls: [] };
}

function readAssistant(message, at, open) {
    const calls = optional(message.tool_calls, list, `${at}.tool_calls`, []).map((call, index) =>
        readCall(call, `${at}.tool_calls[${index}]`, open),
    );
    const text = optional(message.content, readText, `${at}.content`, "");
    if (text === "" && calls.length === 0) {
        throw badRequest(at, "must have content or tool_calls");
    }
    return { role: "assistant", text, calls };
}

function readCall(value, at, open) {
    const call = object(value, at);
    onlyKeys(call, ["id", "type", "function"], at);
    oneOf(call.type, ["function"], `${at}.type`);
    const id = string(call.id, `${at}.id`);
    const name = string(object(call.function, `${at}.function`).name, `${at}.function.name`);
    const argumentsText = string(call.function.arguments, `${at}.function.arguments`);
    if (open.has(id)) throw badRequest(`${at}.id`, `"${id}" is the id of another call, too`);
    open.set(id, name);
    return { name, arguments: argumentsText };
}

function readResult(message, at, open) {
    const id = string(message.tool_call_id, `${at}.tool_call_id`);
    const call = open.get(id);
    if (call === undefined) {
        throw badRequest(`${at}.tool_call_id`, `"${id}" is no call that waits for a result`);
    }
    open.delete(id);
    return { role: "tool", text: readText(message.content, `${at}.content`), calls: [], call };
}

function refuseOpenCalls(open, at) {
    if (open.size === 0) return;
    const ids = [...open.keys()].join(", ");
    throw badRequest(at, `these calls have no result yet: ${ids}; results must follow their calls`);
}

function readText(value, at) {
    if (typeof value === "string") return value;
    if (!Array.isArray(value)) throw badRequest(at, "must be a string or a list of parts");
    return value.map((part, index) => readPart(part, `${at}[${index}]`)).join("");
}

function readPart(value, at) {
    const part = object(value, at);
    if (part.type !== "text") {
        throw badRequest(`${at}.type`, 'must be "text"; this model reads nothing else');
    }
    return string(part.text, `${at}.text`);
}
