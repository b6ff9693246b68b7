// The HTTP side: routes, bodies, server-sent events.

import { randomUUID } from "node:crypto";
import { complete, prepare, stream } from "./chat.mjs";
import { Refusal } from "./refusal.mjs";

const MOST_BODY_BYTES = 4 * 1024 * 1024;

/** The request handler of a `node:http` server. */
export function api(model, modelId) {
    const routes = {
        "/v1/models": { GET: (_, response) => sendJson(response, 200, listModels(modelId)) },
        "/v1/chat/completions": {
            POST: (request, response) => chat(request, response, model, modelId),
        },
    };
    return async (request, response) => {
        try {
            await findRoute(routes, request)(request, response);
        } catch (error) {
            fail(response, error);
        }
    };
}

function findRoute(routes, request) {
    const path = request.url.split("?", 1)[0];
    const methods = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (methods === undefined) throw new Refusal(404, `there is no ${path} here`);
    if (methods[request.method] === undefined) {
        throw new Refusal(405, `${path} takes ${Object.keys(methods).join(", ")}`);
    }
    return methods[request.method];
}

function listModels(modelId) {
    return {
        object: "list",
        data: [{ id: modelId, object: "model", created: 0, owned_by: "toolcrib" }],
    };
}

async function chat(request, response, model, modelId) {
    const left = new AbortController();
    response.on("close", () => left.abort(new Error("the client went away")));
    const prepared = await prepare(await readJson(request), model, modelId);
    const head = {
        id: `chatcmpl-${randomUUID()}`,
        created: Math.floor(Date.now() / 1000),
        model: modelId,
    };
    if (prepared.request.stream) return sendStream(response, prepared, model, left.signal, head);
    const { message, finishReason, usage } = await complete(prepared, model, left.signal);
    const choices = [{ index: 0, message, logprobs: null, finish_reason: finishReason }];
    return sendJson(response, 200, { ...head, object: "chat.completion", choices, usage });
}

async function sendStream(response, prepared, model, signal, head) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    const { includeUsage } = prepared.request;
    const send = (choices, usage = null) => {
        const chunk = {
            ...head,
            object: "chat.completion.chunk",
            choices,
            ...(includeUsage && { usage }),
        };
        response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    const choice = (delta, finishReason = null) => [
        { index: 0, delta, logprobs: null, finish_reason: finishReason },
    ];
    const { finishReason, usage } = await stream(prepared, model, signal, (delta) =>
        send(choice(delta)),
    );
    send(choice({}, finishReason));
    if (includeUsage) send([], usage);
    response.end("data: [DONE]\n\n");
}

async function readJson(request) {
    const pieces = [];
    let bytes = 0;
    for await (const piece of request) {
        bytes += piece.length;
        // Read to its end all the same: a client that is still writing would not hear the answer.
        if (bytes <= MOST_BODY_BYTES) pieces.push(piece);
    }
    if (bytes > MOST_BODY_BYTES)
        throw new Refusal(413, `the body is over ${MOST_BODY_BYTES} bytes`);
    try {
        return JSON.parse(Buffer.concat(pieces).toString("utf8"));
    } catch (error) {
        throw new Refusal(400, `the body is no JSON: ${error.message}`);
    }
}

function sendJson(response, status, value) {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
}

function fail(response, error) {
    if (response.closed) return;
    const refusal = error instanceof Refusal ? error : unexpected(error);
    if (!response.headersSent) return sendJson(response, refusal.status, refusal);
    response.end(`data: ${JSON.stringify(refusal)}\n\n`);
}

function unexpected(error) {
    console.error(error);
    return new Refusal(500, `the server failed: ${error.message}`);
}
