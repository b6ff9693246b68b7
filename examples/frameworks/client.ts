// The tools of a project, from TypeScript with the official SDK (`npm install @modelcontextprotocol/client`). Run it in
// the project's folder: `node client.ts`.
// snippet
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: "toolcrib", args: ["serve", "--project", "."] }));
console.log("offered:", (await client.listTools()).tools.length);
const result = await client.callTool({ name: "list_charges", arguments: { order_id: 1042 } });
for (const block of result.content) if (block.type === "text") console.log("result:", block.text);
await client.close();
// end
