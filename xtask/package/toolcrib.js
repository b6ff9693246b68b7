#!/usr/bin/env node
// Runs the program of the package for this system, which npm installs beside this one.
"use strict";

const { spawn } = require("node:child_process");

const isMusl = () => {
  if (process.platform !== "linux") return false;
  // Without this, the report resolves the names of all open connections.
  process.report.excludeNetwork = true;
  return !process.report.getReport().header.glibcVersionRuntime;
};
const system = `${process.platform}-${process.arch}${isMusl() ? "-musl" : ""}`;

let program;
try {
  program = require.resolve(`toolcrib-${system}/bin/toolcrib`);
} catch {
  console.error(
    `toolcrib: the package toolcrib-${system} is not installed. ` +
      "If npm left out optional dependencies, install again without --omit=optional; " +
      "if there is no such package, this system is not supported yet.",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to both processes; the program decides when to end.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`toolcrib: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
