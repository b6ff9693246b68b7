// Starts the server as a program of its own, for tests and figures.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** `{ base, process }`; whoever starts it ends `process`. */
export async function startServer(weights) {
    const args = ["server.mjs", "--weights", weights, "--port", "0"];
    const options = { cwd: import.meta.dirname, stdio: ["ignore", "pipe", "inherit"] };
    const server = spawn(process.execPath, args, options);
    const ended = once(server, "exit").then(() => ["it ended"]);
    const [line] = await Promise.race([once(createInterface(server.stdout), "line"), ended]);
    const base = /^listening on (http:\S+)$/.exec(line)?.[1];
    if (base === undefined) throw new Error(`the server did not start: ${line}`);
    return { base, process: server };
}
