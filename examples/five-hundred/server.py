"""A stand-in for a published MCP server: its definitions, and the answers for one failed pipeline.

    python3 server.py gitlab

lists the tools of `servers/gitlab.json`, as the package named there lists them, and answers calls
from `answers.json`. A text `$title` in an answer is the argument of that name.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")


class Unknown(Exception):
    """A request that the server does not serve."""


def filled(answer, arguments):
    match answer:
        case dict():
            return {key: filled(value, arguments) for key, value in answer.items()}
        case list():
            return [filled(value, arguments) for value in answer]
        case str() if answer.startswith("$"):
            return arguments.get(answer[1:])
    return answer


def called(answers, tools, name, arguments):
    if name not in tools:
        raise Unknown(f"unknown tool: {name}")
    if name not in answers:
        text, failed = f"this stand-in has no answer for `{name}`", True
    else:
        text, failed = json.dumps(filled(answers[name], arguments)), False
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def answer(request, server, tools, answers):
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": server["package"], "version": server["version"]},
            }
        case "tools/list":
            return {"tools": list(tools.values())}
        case "tools/call":
            return called(answers, tools, params["name"], params.get("arguments") or {})
        case "ping":
            return {}
    raise Unknown(f"unknown method: {request['method']}")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 server.py SERVER")
    name = sys.argv[1]
    server = json.loads((FOLDER / "servers" / f"{name}.json").read_text("utf-8"))
    answers = json.loads((FOLDER / "answers.json").read_text("utf-8")).get(name, {})
    tools = {tool["name"]: tool for tool in server["tools"]}
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        response = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            response["result"] = answer(request, server, tools, answers)
        except Unknown as problem:
            response["error"] = {"code": -32601, "message": str(problem)}
        print(json.dumps(response), flush=True)


main()
