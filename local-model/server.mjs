// SmolLM2 behind an OpenAI-compatible server, for this machine only. docs/local-model.md says more.

import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { api } from "./api.mjs";
import { LocalModel } from "./model.mjs";

const MODEL_ID = "smollm2";
const USAGE =
    "Usage: node server.mjs --weights FILE.gguf [--port PORT]   (port 0, the default: any free one)";

function readArguments() {
    try {
        const { values } = parseArgs({
            options: { weights: { type: "string" }, port: { type: "string", default: "0" } },
        });
        const port = Number(values.port);
        if (values.weights === undefined) throw new Error("--weights is missing");
        if (!/^\d+$/.test(values.port) || port > 65535)
            throw new Error("--port must be 0 to 65535");
        return { weights: values.weights, port };
    } catch (error) {
        console.error(`${error.message}\n${USAGE}`);
        process.exit(2);
    }
}

const { weights, port } = readArguments();
const server = createServer(api(await LocalModel.load(weights), MODEL_ID));
server.on("error", (error) => {
    console.error(error.message);
    process.exit(1);
});
server.listen(port, "127.0.0.1", () =>
    console.log(`listening on http://127.0.0.1:${server.address().port}`),
);
