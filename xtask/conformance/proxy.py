"""FastMCP's proxy of one MCP server, over HTTP on an ephemeral port: proxy.py URL"""

import sys

from fastmcp.server.server import create_proxy

create_proxy(sys.argv[1], name="proxy").run(transport="http", host="127.0.0.1", port=0)
