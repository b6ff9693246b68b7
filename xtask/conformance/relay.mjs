// The suite sends no token and uses the fixture's own names of tools and prompts. This relay adds the gateway's token
// and its prefix of names, and changes nothing else. Several gateways get the requests in turns.

import { createServer, request } from "node:http";

const NAMED = ["tools/call", "prompts/get"];

/** Listens on an ephemeral port of this machine, in front of gateways with these URLs. */
export async function relay(urls, token, prefix) {
  let requests = 0;
  const server = createServer(async (incoming, outgoing) => {
    const url = urls[requests++ % urls.length];
    const own = `127.0.0.1:${server.address().port}`;
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    for (const name of ["host", "origin"]) headers[name] &&= headers[name].replace(own, url.host);
    if (NAMED.includes(headers["mcp-method"])) headers["mcp-name"] &&= prefix + headers["mcp-name"];
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = prefixed(Buffer.concat(chunks), prefix);
    if (body.length > 0) headers["content-length"] = body.length;

    const path = incoming.url;
    const forward = request({ hostname: url.hostname, port: url.port, method: incoming.method, path, headers });
    forward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forward.destroy());
    forward.on("response", (answer) => {
      delete answer.headers["content-length"];
      outgoing.writeHead(answer.statusCode, answer.headers).flushHeaders();
      let rest = "";
      answer.setEncoding("utf8").on("data", (text) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop();
        for (const line of lines) outgoing.write(`${bare(line, prefix)}\n`);
      });
      answer.on("end", () => outgoing.end(bare(rest, prefix)));
      answer.on("error", () => outgoing.destroy());
    });
    forward.end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** A request with the gateway's name of the tool or prompt that it is about. */
function prefixed(body, prefix) {
  const message = parsed(body);
  const named = NAMED.includes(message?.method) ? message.params : message?.params?.ref;
  if (typeof named?.name !== "string") return body;
  named.name = prefix + named.name;
  return Buffer.from(JSON.stringify(message));
}

/** A line of a response with the upstream's names of the tools or prompts that it lists. */
function bare(line, prefix) {
  const [, field, json] = /^(data: ?)?(.*)$/su.exec(line);
  const message = parsed(json);
  const named = message?.result?.tools ?? message?.result?.prompts;
  if (!Array.isArray(named)) return line;
  for (const each of named) each.name = each.name.replace(prefix, "");
  return (field ?? "") + JSON.stringify(message);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
