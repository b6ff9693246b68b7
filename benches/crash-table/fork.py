"""Imports a system of the crash table once, and forks a process of it for each line that it reads.

A line contains the environment of the next process, whose id is the answer, or `kill`. Imports take seconds, in which nothing
of the system runs that a kill could damage.
"""

import contextlib
import importlib
import os
import signal
import sys

# What the systems import at their first request.
LAZY = ["anyio._backends._asyncio", "certifi", "h2.connection", "httpcore", "httpcore2", "sqlite3"]
LAZY += ["dbos._sys_db_sqlite", "genai_prices.data", "sqlalchemy.dialects.sqlite"]
LAZY += ["langchain_core.tracers.stdout", "openai.lib.streaming.chat"]
LAZY += ["openai.resources.chat.completions"]

system = importlib.import_module(sys.argv[1])
for name in LAZY:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
child = None
for line in sys.stdin:
    line = line.rstrip("\n")
    if line == "kill":
        if child is not None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            child = None
    else:
        child = os.fork()
        if child == 0:
            os.environ.pop("CRASH_KEYED", None)
            os.environ.update(pair.split("=", 1) for pair in line.split("\t"))
            os.dup2(2, 1)
            system.main()
            sys.stdout.flush()
            signal.pause()
    print(child or "dead", flush=True)
