// Vercel's `ai`: one run of its loop with a model as code. Prints the times of its iterations as JSON.

import { createRequire } from "node:module";

// The packages are installed in the folder where this is run, not beside this file.
const load = createRequire(`${process.cwd()}/`);
const { generateText, jsonSchema, isStepCount, tool } = load("ai");
const { MockLanguageModelV4 } = load("ai/test");

const ITERATIONS = 200;
const toolCount = Number(process.argv[2]);

const lookUp = (number) =>
  tool({
    description: `Looks a record up in ledger ${number} by its number.`,
    inputSchema: jsonSchema({
      type: "object",
      properties: {
        number: { type: "integer", minimum: 0, description: `The record's number in ledger ${number}.` },
        details: { type: "boolean", description: "Whether to add its history." },
      },
      required: ["number"],
      additionalProperties: false,
    }),
    execute: async ({ number }) => `record ${number}: open`,
  });
const name = (number) => `look_up_${String(number).padStart(4, "0")}`;
const tools = Object.fromEntries(
  Array.from({ length: toolCount }, (_, number) => [name(number), lookUp(number)]),
);

const cpu = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};
const starts = [];
let asked = 0;
const usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};
const model = new MockLanguageModelV4({
  doGenerate: async () => {
    starts.push({ cpu: cpu(), wall: performance.now() * 1000 });
    asked += 1;
    return asked <= ITERATIONS
      ? {
          content: [
            {
              type: "tool-call",
              toolCallId: `call_${asked}`,
              toolName: "look_up_0007",
              input: '{"number": 1042}',
            },
          ],
          finishReason: { unified: "tool-calls", raw: "tool-calls" },
          usage,
          warnings: [],
        }
      : {
          content: [{ type: "text", text: "Done." }],
          finishReason: { unified: "stop", raw: "stop" },
          usage,
          warnings: [],
        };
  },
});

const { text, steps } = await generateText({
  model,
  tools,
  prompt: "Read the ledgers.",
  stopWhen: isStepCount(ITERATIONS + 1),
});
const answered = steps.flatMap((step) => step.toolResults).filter((result) => result.output === "record 1042: open");
if (text !== "Done." || answered.length !== ITERATIONS) {
  throw new Error(`it ended otherwise: ${text}, ${answered.length} results`);
}
const times = (key) => starts.slice(1).map((start, index) => start[key] - starts[index][key]);
console.log(JSON.stringify({ iterations: times("cpu"), wall: times("wall") }));
