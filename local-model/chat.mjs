// One chat completion, from the request's body to the answer, whole or piece by piece.

import { randomUUID } from "node:crypto";
import { answerGrammar, AnswerReader } from "./answer.mjs";
import { buildTurns } from "./prompt.mjs";
import { badRequest } from "./refusal.mjs";
import { readRequest } from "./request.mjs";

/** All that can be refused is refused here; what it returns can be answered. */
export async function prepare(body, model, modelId) {
    const request = readRequest(body, modelId);
    const prompt = model.tokens(buildTurns(request));
    if (prompt.length >= model.contextTokens) {
        const problem = `are ${prompt.length} tokens with their tools; the context has ${model.contextTokens}`;
        throw badRequest("messages", problem, "context_length_exceeded");
    }
    const text = answerGrammar(request.choice);
    const grammar = text === undefined ? undefined : await model.grammar(text);
    return { request, prompt, grammar };
}

/** `{ message, finishReason, usage }`. */
export async function complete(prepared, model, signal) {
    const message = { role: "assistant", content: "", refusal: null };
    const ending = await answer(prepared, model, signal, {
        text: (piece) => {
            message.content += piece;
        },
        call: (call) => {
            message.content = null;
            message.tool_calls = [call];
        },
        argumentsText: (piece) => {
            message.tool_calls[0].function.arguments += piece;
        },
    });
    return { message, ...ending };
}

/** Hands each piece to `send` as the `delta` of a chunk. */
export function stream(prepared, model, signal, send) {
    send({ role: "assistant", content: "" });
    return answer(prepared, model, signal, {
        text: (piece) => send({ content: piece }),
        call: (call) => send({ tool_calls: [{ index: 0, ...call }] }),
        argumentsText: (piece) =>
            send({ tool_calls: [{ index: 0, function: { arguments: piece } }] }),
    });
}

async function answer({ request, prompt, grammar }, model, signal, on) {
    const reader = new AnswerReader(request.choice, {
        ...on,
        call: (name) => on.call(newCall(name)),
    });
    const { cached, generated, ended } = await model.generate({
        prompt,
        grammar,
        mayRepeat: request.choice.kind === "required",
        maxTokens: request.maxTokens,
        signal,
        onText: (piece) => reader.add(piece),
    });
    return {
        finishReason: finishReason(ended, reader),
        usage: usage(prompt.length, cached, generated),
    };
}

function finishReason(ended, reader) {
    if (!ended) return "length";
    return reader.isCall ? "tool_calls" : "stop";
}

function newCall(name) {
    const id = `call_${randomUUID().replaceAll("-", "")}`;
    return { id, type: "function", function: { name, arguments: "" } };
}

function usage(prompt, cached, generated) {
    return {
        prompt_tokens: prompt,
        completion_tokens: generated,
        total_tokens: prompt + generated,
        prompt_tokens_details: { cached_tokens: cached },
    };
}
