# The tools of a project, from Python with the official SDK (`pip install mcp`). Run it in the project's folder.
# snippet
import asyncio
from mcp import Client, StdioServerParameters

async def main():
    server = StdioServerParameters(command="toolcrib", args=["serve", "--project", "."])
    async with Client(server) as client:
        print("offered:", len((await client.list_tools()).tools))
        result = await client.call_tool("list_charges", {"order_id": 1042})
        print("result:", result.content[0].text)

asyncio.run(main())
# end
