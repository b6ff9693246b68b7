import fcntl, json, os, signal, subprocess, sys, time

mode = sys.argv[1]
if mode == "deaf":
    # Closes its input before it answers, so the client's next message cannot be written.
    asked = json.loads(sys.stdin.readline())
    os.close(0)
    refused = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "unknown"}}
    print(json.dumps(refused), flush=True)
    time.sleep(0.2)
    sys.stderr.write("no key is set\n")
    sys.exit(2)
if mode == "refuse":
    sys.stderr.write("no key is set\n")
    sys.exit(2)
if mode == "locks":
    lock = open(os.environ["MARKER"], "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("another one runs")
if mode in ("stubborn", "locks"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}


def call(name):
    if name == "die":
        sys.stderr.write("about to die\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "hang_up":
        os.close(1)
        time.sleep(600)
    if name == "spawn":
        subprocess.Popen(["setsid", "sleep", "600"])
        return "spawned"
    return json.dumps(dict(os.environ))


while True:
    line = sys.stdin.readline()
    if not line:
        if mode == "stubborn":
            signal.pause()
        break
    message = json.loads(line)
    method, id = message["method"], message.get("id")
    if mode == "mute" or id is None:
        continue
    if method == "initialize":
        send({"id": id, "result": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "python", "version": "1"},
        }})
    elif method == "tools/list":
        if message["params"].get("cursor"):
            send({"id": id, "result": {"tools": [tool("die"), tool("hang_up"), tool("spawn")]}})
        else:
            send({"id": id, "result": {"tools": [tool("env")], "nextCursor": "more"}})
    elif method == "tools/call":
        text = call(message["params"]["name"])
        send({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
    else:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
