"""Runs a program as its users do, so that the compiler knows which code is used.

    python3 training.py PROGRAM EXAMPLES FOLDER

PROGRAM is the program, built to count what it runs. EXAMPLES is the folder of the examples; FOLDER is
empty. Prints nothing unless an answer is wrong.
"""

import atexit
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

PROGRAM, EXAMPLES, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])

# Calls of a gateway's caller, and callers. Most time of a program that runs for long is such calls.
CALLS, CALLERS = 1_500, 8

SESSION, STATELESS = "2025-11-25", "2026-07-28"


def run(*args, project):
    """A command in a project."""
    command = [PROGRAM, *args, "-p", str(project)]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def served(state, *args):
    """A server over HTTP: its process, its port, and its token."""
    process = subprocess.Popen(
        [PROGRAM, "serve", "--http", "127.0.0.1:0", "--state", str(state), *args],
        cwd=FOLDER, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    # Also if an answer is wrong.
    atexit.register(process.kill)
    for line in process.stderr:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, int(found[1]), (state / "serve-token").read_text().strip()
    sys.exit(f"no server: {process.wait()}")


class Caller:
    """A client of a gateway: in a session, or with independent requests."""

    def __init__(self, port, token, version):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.token, self.version, self.session, self.number = token, version, None, 0
        if version == SESSION:
            client = {"name": "training", "version": "1"}
            self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})
            self.send({"method": "notifications/initialized"}, {})

    def ask(self, method, params):
        """The result of a request."""
        headers = {}
        if self.version == STATELESS:
            prefix = "io.modelcontextprotocol/"
            client = {"name": "training", "version": "1"}
            meta = {"protocolVersion": self.version, "clientInfo": client, "clientCapabilities": {}}
            params = {**params, "_meta": {prefix + key: value for key, value in meta.items()}}
            headers = {"Mcp-Method": method}
            name = params.get("name") or params.get("uri")
            if name:
                headers["Mcp-Name"] = name
        self.number += 1
        answer = self.send({"id": self.number, "method": method, "params": params}, headers)
        answers = [line[6:] for line in answer.splitlines() if line.startswith("data: {")] or [answer]
        answer = json.loads(answers[-1])
        if "result" not in answer:
            sys.exit(f"{method} {params}: {answer}")
        return answer["result"]

    def send(self, message, headers):
        headers |= {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if self.session or self.version == STATELESS:
            headers["MCP-Protocol-Version"] = self.version
        body = json.dumps({"jsonrpc": "2.0", **message})
        self.connection.request("POST", "/mcp", body, headers)
        response = self.connection.getresponse()
        self.session = response.getheader("Mcp-Session-Id") or self.session
        text = response.read().decode()
        if response.status not in (200, 202):
            sys.exit(f"{message}: {response.status} {text}")
        return text

    def call(self, tool, arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            sys.exit(f"{tool} {arguments}: {result}")


def calls(port, token, version, server):
    caller = Caller(port, token, version)
    caller.ask("tools/list", {})
    for number in range(CALLS):
        caller.call(f"mcp__{server}__list_charges", {"order_id": 1042})
        if number % 100 == 0:
            caller.ask("tools/list", {})


def gateway(desk):
    """A gateway before a server over HTTP and one on pipes, and callers of both."""
    upstream, port, token = served(FOLDER / "upstream", "-p", str(desk))
    headers = {"Authorization": f"Bearer {token}"}
    servers = {
        "http": {"url": f"http://127.0.0.1:{port}/mcp", "headers": headers},
        "pipe": {"command": PROGRAM, "args": ["serve", "-p", str(desk)]},
    }
    file = FOLDER / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    door, port, token = served(FOLDER / "door", "--import", str(file), "--allow-stray-children")
    with ThreadPoolExecutor(CALLERS) as pool:
        callers = [
            pool.submit(calls, port, token, version, "pipe" if number == 0 else "http")
            for version in (SESSION, STATELESS)
            for number in range(CALLERS // 2)
        ]
    # The exit of a thread ends only the thread.
    for caller in callers:
        caller.result()
    for process in (door, upstream):
        process.terminate()
        if process.wait(60) not in (0, -15):
            sys.exit(f"a server ended with {process.returncode}")


def commands(desk):
    """What a person types."""
    run("run", "-q", "I was charged twice for order 1042, please refund one charge", project=desk)
    for args in (["check"], ["lint"], ["menu"], ["tools"], ["explain", "list_charges"]):
        run(*args, project=desk)
    for _ in range(20):
        run("call", "list_charges", "order_id:=1042", "--json", project=desk)
    tools = copied("five-hundred")
    run("run", "-q", "Why did the nightly pipeline of shop/checkout fail?", project=tools)
    run("find", "read the output of a failed job", project=tools)
    notes = FOLDER / "notes"
    subprocess.run([PROGRAM, "init", str(notes)], check=True, capture_output=True)
    run("run", "-q", "what do we know about the printer?", project=notes)
    # Elsewhere programs cannot be contained.
    if sys.platform == "linux":
        run("run", "-q", "Why did the job fail?", project=copied("log-detective"))


class Page(http.server.BaseHTTPRequestHandler):
    """A long page of the web."""

    TEXT = "".join(
        f"<h2>Part {n}</h2><p>A <b>word</b> and <a href='/p{n}'>a link</a>.<ul><li>one<li>two</ul>"
        for n in range(2_000)
    )

    def do_GET(self):
        body = f"<!doctype html><title>Long</title><main>{self.TEXT}</main>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def files():
    """Files and pages."""
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{pages.server_address[1]}"
    project = FOLDER / "files"
    for number in range(40):
        shutil.copytree(EXAMPLES / "support-desk", project / "many" / str(number))
        shutil.copytree(EXAMPLES / "five-hundred" / "servers", project / "many" / str(number) / "servers")
    (project / "toolcrib.toml").write_text(f"""
        [files.many]
        folder = "many"
        write = true
        [[tool]]
        kind = "files"
        [[tool]]
        kind = "web"
        hosts = ["127.0.0.1"]
        allow_addresses = ["{host}"]
    """)
    for pattern in ("duplicate", "[Rr]efund\\w+", "no such text"):
        run("call", "search_files", f"pattern={pattern}", project=project)
    run("call", "list_files", "glob=**/*.toml", project=project)
    for _ in range(5):
        run("call", "read_file", "path=1/seed.sql", project=project)
    run("call", "write_file", "path=new.txt", "content=one", project=project)
    for _ in range(5):
        run("call", "fetch_url", f"url=http://{host}/", project=project)
    pages.shutdown()


def copied(example):
    return shutil.copytree(EXAMPLES / example, FOLDER / example)


os.environ["HOME"] = str(FOLDER)
os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "config")
desk = copied("support-desk")
commands(desk)
files()
# A gateway's counts are in files of another name: its code comes first in the program.
counts = pathlib.Path(os.environ["LLVM_PROFILE_FILE"])
os.environ["LLVM_PROFILE_FILE"] = str(counts.with_name(f"gateway-{counts.name}"))
gateway(desk)
