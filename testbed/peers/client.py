"""The official Python SDK as a client: does what its caller says, step by step, and prints what came of it.

One argument, JSON: {"mode": "legacy" | "auto" | "2026-07-28",
                     "command": [program, argument ...] | "url": URL, "token": TOKEN,
                     "steps": [{"do": "list", "until": [NAME ...]}, {"do": "call" | "cancel", "name": ..., "arguments": {...}},
                               {"do": "change"}]}
One line of JSON on standard output: {"protocol": VERSION, "steps": [...]}. client.mjs says the same.
"""

import json
import sys
from contextlib import AsyncExitStack

import anyio
import httpx2
import mcp_types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

# Long enough for a busy machine; what hangs fails here, by name.
PATIENCE = 60


class Driver:
    def __init__(self):
        self.changed = anyio.Event()
        self.client = None

    async def heard(self, message):
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self.changed.set()

    async def run(self, job):
        async with AsyncExitStack() as stack:
            server = await self.server(job, stack)
            client = Client(server, mode=job["mode"], message_handler=self.heard, cache=None)
            self.client = await stack.enter_async_context(client)
            steps = []
            for step in job["steps"]:
                with anyio.fail_after(PATIENCE):
                    steps.append(await getattr(self, step["do"])(step))
            return {"protocol": self.client.protocol_version, "steps": steps}

    async def server(self, job, stack):
        if "command" in job:
            return StdioServerParameters(command=job["command"][0], args=job["command"][1:])
        headers = {"Authorization": f"Bearer {job['token']}"}
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=PATIENCE))
        return streamable_http_client(job["url"], http_client=http)

    async def list(self, step):
        """Lists the tools, again and again until all names of `until` are in the list."""
        while True:
            tools = [tool.name for tool in (await self.client.list_tools()).tools]
            if set(step.get("until", [])) <= set(tools):
                return {"tools": tools}
            await anyio.sleep(0.1)

    async def call(self, step):
        progress = []

        async def note(done, total, _message):
            progress.append([done, total])

        try:
            result = await self.client.call_tool(
                step["name"], step.get("arguments"), progress_callback=note
            )
        except MCPError as error:
            return {"error": {"code": error.code, "data": error.data}}
        return {
            "text": "\n".join(block.text for block in result.content if block.type == "text"),
            "kinds": [block.type for block in result.content],
            "structured": result.structured_content,
            "is_error": bool(result.is_error),
            "code": (result.meta or {}).get("toolcrib/code"),
            "progress": progress,
        }

    async def cancel(self, step):
        """Calls, and takes it back when the first progress comes."""
        with anyio.CancelScope() as scope:

            async def give_up(*_):
                scope.cancel()

            await self.client.call_tool(step["name"], step.get("arguments"), progress_callback=give_up)
        return {"cancelled": scope.cancelled_caught}

    async def change(self, _step):
        """Waits until the server has said that its tools are others now."""
        await self.changed.wait()
        return {"changed": True}


print(json.dumps(anyio.run(Driver().run, json.loads(sys.argv[1]))))
