// How fast the model is here: node figures.mjs FILE.gguf

import { readFileSync } from "node:fs";
import { startServer } from "./start.mjs";

const PARAMETERS = {
    type: "object",
    properties: { long: { type: "array", items: { type: "integer" }, minItems: 90 } },
};
const TOOL = {
    type: "function",
    function: { name: "write", parameters: { ...PARAMETERS, required: ["long"] } },
};
const LONG = "The tool shop sends what was ordered within two days. ".repeat(100);

const begun = performance.now();
const server = await startServer(process.argv[2]);
const ready = performance.now() - begun;
try {
    await ask("Hello.", { max_tokens: 1 });
    const prompt = await ask(LONG, { max_tokens: 1 });
    const words = await ask("Tell me about the sea.", { max_tokens: 200 });
    const call = await ask("Count.", { max_tokens: 200, tools: [TOOL], tool_choice: "required" });
    print("ready after the start", `${(ready / 1000).toFixed(1)} s`);
    print("prompt", `${rate(prompt.usage.prompt_tokens, prompt.seconds)} tokens/s`);
    print("text", `${rate(words.usage.completion_tokens, words.seconds)} tokens/s`);
    print(
        "arguments, under a grammar",
        `${rate(call.usage.completion_tokens, call.seconds)} tokens/s`,
    );
    print("memory at its peak", `${peakMemory(server.process.pid)} MiB`);
} finally {
    server.process.kill();
}

async function ask(content, more) {
    const body = JSON.stringify({
        model: "smollm2",
        messages: [{ role: "user", content }],
        ...more,
    });
    const began = performance.now();
    const response = await fetch(`${server.base}/v1/chat/completions`, { method: "POST", body });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error.message);
    return { usage: answer.usage, seconds: (performance.now() - began) / 1000 };
}

function rate(tokens, seconds) {
    return Math.round(tokens / seconds);
}

function peakMemory(pid) {
    const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1];
    return Math.round(kibibytes / 1024);
}

function print(what, figure) {
    console.log(`${what.padEnd(28)} ${figure}`);
}
