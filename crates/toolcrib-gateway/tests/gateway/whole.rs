//! What passes beside plain tools, between all pairs of versions: clients and servers are raw JSON,
//! so that each field of the protocol is seen.

mod upstream;

use std::{collections::VecDeque, num::NonZeroU32, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use toolcrib_core::{CancellationToken, Policy, Rule, unfence};
use toolcrib_gateway::{Access, CallLimits, Fence, Gateway, GatewayBuilder, HttpAccess};
use toolcrib_mcp::{McpClient, pipe_mcp_client};

use self::upstream::{VERSION, serve};
pub(super) use self::upstream::{server, server_with};
use super::{
    support::{ERAS, Era, engine},
    web::{ANA, Web, stateless},
};

/// A gateway to servers of one era, one of whose resources is denied.
pub(super) fn gateway(names: &[&str], era: Era) -> Gateway {
    let args = toolcrib_core::ArgumentMatch::at("/uri").unwrap().starts_with("test://closed");
    let closed = Rule::deny("closed").toolsets(["mcp.resources"]).arguments([args]);
    gateway_under(closed, names, era).build()
}

/// A gateway to servers of one era, under a rule.
pub(super) fn gateway_under(rule: Rule, names: &[&str], era: Era) -> GatewayBuilder {
    let servers: Vec<_> = names.iter().map(|name| server(name, era)).collect();
    let engine = engine().policy(Policy::of([rule]));
    let engine =
        servers.iter().fold(engine, |engine, server| engine.provider(Arc::new(server.clone())));
    let gateway = Gateway::builder(engine.build().unwrap());
    servers.iter().fold(gateway, GatewayBuilder::watch)
}

/// A client that reads and writes lines.
pub(super) struct Raw {
    era: Era,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    last: i64,
    /// Messages that are not responses.
    heard: VecDeque<Value>,
    capabilities: Value,
}

impl Raw {
    pub(super) async fn of(
        gateway: &Gateway,
        era: Era,
        access: Access,
        capabilities: Value,
    ) -> (Self, Value) {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (stdin, stdout) = tokio::io::split(far);
        let gateway = gateway.clone();
        tokio::spawn(async move {
            gateway.serve_stdio(stdin, stdout, access, CancellationToken::new()).await
        });
        let (read, write) = tokio::io::split(near);
        let lines = BufReader::new(read).lines();
        let mut raw = Self { era, lines, write, last: 0, heard: VecDeque::new(), capabilities };
        let begun = match era {
            Era::Sessions => {
                let info = json!({ "name": "raw", "version": "1" });
                let params = json!({
                    "protocolVersion": "2025-11-25", "capabilities": raw.capabilities,
                    "clientInfo": info,
                });
                raw.ask("initialize", params).await
            }
            Era::Stateless => raw.ask("server/discover", json!({})).await,
        };
        (raw, begun)
    }

    async fn send(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("a line");
        serde_json::from_str(&line).unwrap()
    }

    /// The result or the error of a request. Requests of the server are answered with `Ana`.
    pub(super) async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.last += 1;
        if self.era == Era::Stateless {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": VERSION,
                "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
            for (key, value) in meta.as_object().unwrap() {
                params["_meta"][key] = value.clone();
            }
        }
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let message = self.read().await;
            if message["method"].is_string() {
                if let Some(asked) = message.get("id") {
                    let result = json!({ "action": "accept", "content": { "name": "Ana" } });
                    let reply = json!({ "jsonrpc": "2.0", "id": asked, "result": result });
                    self.send(&reply).await;
                }
                self.heard.push_back(message);
            } else if message["id"] == id {
                return match message.get("error") {
                    Some(error) => error.clone(),
                    None => message["result"].clone(),
                };
            }
        }
    }

    async fn call(&mut self, tool: &str, more: Value) -> Value {
        let mut params = json!({ "name": format!("mcp__s__{tool}"), "arguments": {} });
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        self.ask("tools/call", params).await
    }
}

pub(super) fn pairs() -> impl Iterator<Item = (Era, Era)> {
    ERAS.into_iter().flat_map(|client| ERAS.into_iter().map(move |server| (client, server)))
}

#[tokio::test]
async fn content_passes_in_its_order_with_all_fields() {
    for (era, of_server) in pairs() {
        let gateway = gateway(&["s"], of_server);
        let (mut client, begun) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let instructions = begun["instructions"].as_str().unwrap();
        assert!(instructions.contains("server `s`") && instructions.contains("Be brief."));
        let tools = client.ask("tools/list", json!({})).await;
        let mixed = tools["tools"].as_array().unwrap().iter();
        let mixed = mixed.clone().find(|tool| tool["name"] == "mcp__s__mixed").unwrap();
        assert_eq!(mixed["annotations"], json!({ "readOnlyHint": true, "openWorldHint": false }));
        assert_eq!(mixed["icons"][0]["src"], "https://example.test/i.png");
        assert_eq!((&mixed["title"], &mixed["_meta"]["k"]), (&json!("Mixed"), &json!("v")));

        let result = client.call("mixed", json!({})).await;
        let content = result["content"].as_array().unwrap();
        let kinds: Vec<_> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["text", "image", "text", "resource_link"], "{era:?} {of_server:?}");
        assert_eq!(unfence(content[0]["text"].as_str().unwrap()).0, "one");
        assert_eq!(content[0]["annotations"]["priority"], 1.0);
        assert!(!content[2]["text"].as_str().unwrap().contains("<|im_start|>"));
        assert_eq!((&content[3]["title"], &content[3]["size"]), (&json!("T"), &json!(7)));
        assert_eq!(result["structuredContent"], json!({ "a": 1 }));
        assert_eq!(result["_meta"], json!({ "example.test/x": 1 }));
        // A link of a result can be read, although no server lists it.
        let read = client.ask("resources/read", json!({ "uri": "far://away" })).await;
        assert_eq!(read["contents"][0]["uri"], "far://away");

        let key = "toolcrib/idempotency-key";
        let sent =
            json!({ "_meta": { "traceparent": "00-a", "example.test/k": 1, key: "theirs" } });
        let said = client.call("meta", sent).await;
        let said = unfence(said["content"][0]["text"].as_str().unwrap()).0.to_owned();
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["traceparent"], &said["example.test/k"]), (&json!("00-a"), &json!(1)));
        // A parser would keep one of two keys with this name.
        assert!(said[key].is_string() && said[key] != "theirs", "{said}");

        assert_eq!(client.call("nothing", json!({})).await["content"], json!([]));
        let params = json!({ "name": "mcp__s__greet", "arguments": "none" });
        assert_eq!(client.ask("prompts/get", params).await["code"], -32602);

        let error = client.call("visit", json!({})).await;
        assert_eq!(error["code"], -32042);
        assert_eq!(error["data"]["elicitations"][0]["url"], "https://example.test/x");
    }
}

#[tokio::test]
async fn resources_and_prompts_pass_under_the_policy() {
    for (era, of_server) in pairs() {
        let gateway = gateway(&["s", "t"], of_server);
        let (mut client, begun) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        assert!(
            begun["capabilities"]["prompts"].is_object()
                && begun["capabilities"]["logging"].is_object()
        );
        let listed = client.ask("resources/list", json!({})).await;
        let uris = listed["resources"].as_array().unwrap().iter();
        let uris: Vec<_> = uris.map(|each| each["uri"].as_str().unwrap()).collect();
        // The second server has the same one, and the denied one is not there.
        assert_eq!(uris, ["test://open", "mcp:t/test://open"], "{era:?} {of_server:?}");
        for uri in ["test://open", "mcp:t/test://open", "test://of/7"] {
            let read = client.ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(read["contents"][0]["uri"], uri);
            assert_eq!(unfence(read["contents"][0]["text"].as_str().unwrap()).0, "read me");
        }
        for uri in ["test://closed", "mcp:t/test://closed", "nowhere://x"] {
            let refused = client.ask("resources/read", json!({ "uri": uri })).await;
            let code = if era == Era::Sessions { -32002 } else { -32602 };
            assert_eq!(refused["code"], code, "{refused}");
        }
        let prompts = client.ask("prompts/list", json!({})).await;
        assert_eq!(prompts["prompts"][0]["name"], "mcp__s__greet");
        assert_eq!(prompts["prompts"][1]["name"], "mcp__t__greet");
        let got = client.ask("prompts/get", json!({ "name": "mcp__t__greet" })).await;
        let hello = json!({ "role": "assistant", "content": { "type": "text", "text": "hello" } });
        assert_eq!((&got["messages"][0], &got["description"]), (&hello, &json!("d")));
        let unknown = client.ask("prompts/get", json!({ "name": "mcp__t__other" })).await;
        assert_eq!(unknown["code"], -32602);
        let of = json!({ "type": "ref/prompt", "name": "mcp__s__greet" });
        let argument = json!({ "name": "a", "value": "r" });
        let completed =
            client.ask("completion/complete", json!({ "ref": of, "argument": argument })).await;
        assert_eq!(completed["completion"]["values"], json!(["red"]));
        assert_eq!(completed["_meta"], json!({ "k": 1 }));
        // The gateway itself sends log messages, so it declares them.
        let level = client.ask("logging/setLevel", json!({ "level": "info" })).await;
        assert_eq!(level["code"] == -32601, era == Era::Stateless, "{level}");
    }
}

/// A rule names a prompt by its whole name. It decided only about clients that used that name.
#[tokio::test]
async fn a_rule_on_a_prompt_decides_by_whatever_name_a_client_asks() {
    for (era, of_server) in pairs() {
        let denied = Rule::deny("no greetings").tools(["mcp__s__greet"]);
        let gateway = gateway_under(denied, &["s", "t"], of_server);
        let gateway = gateway.prefix("s", "").prefix("t", "").build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let prompts = client.ask("prompts/list", json!({})).await;
        let names = prompts["prompts"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|prompt| prompt["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["mcp__t__greet"], "the name without a prefix is the first server's");
        for (name, is_permitted) in
            [("greet", false), ("mcp__s__greet", false), ("mcp__t__greet", true)]
        {
            let got = client.ask("prompts/get", json!({ "name": name })).await;
            assert_eq!(got["messages"].is_array(), is_permitted, "{name}: {got}");
            let of = json!({ "type": "ref/prompt", "name": name });
            let argument = json!({ "name": "a", "value": "r" });
            let completed =
                client.ask("completion/complete", json!({ "ref": of, "argument": argument })).await;
            assert_eq!(completed["completion"].is_object(), is_permitted, "{name}: {completed}");
        }
    }
}

/// The list took a URI from the second server of it, and a read asked the first.
#[tokio::test]
async fn a_listed_resource_can_be_read_where_another_server_of_its_uri_is_denied() {
    for (era, of_server) in pairs() {
        let denied = Rule::deny("not of s").tools(["mcp__s__resources"]);
        let gateway = gateway_under(denied, &["s", "t"], of_server).build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let listed = client.ask("resources/list", json!({})).await;
        let uris = listed["resources"].as_array().unwrap().iter();
        let uris: Vec<_> = uris.map(|each| each["uri"].as_str().unwrap().to_owned()).collect();
        assert_eq!(uris, ["mcp:t/test://open", "mcp:t/test://closed"], "{era:?} {of_server:?}");
        for uri in uris {
            let read = client.ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(read["contents"][0]["uri"], uri, "{read}");
        }
        let refused = client.ask("resources/read", json!({ "uri": "test://open" })).await;
        assert!(refused["code"].is_i64(), "{refused}");
    }
}

/// The waiting call had the only place of its token, which refused the round that continues it.
#[tokio::test]
async fn a_round_that_continues_a_call_is_not_another_call() {
    for of_server in ERAS {
        let limits = CallLimits::new().concurrent(NonZeroU32::MIN).per_minute(NonZeroU32::MIN);
        let access = HttpAccess::new().token(ANA, Access::new().limits(limits));
        let web = Web::of(&gateway(&["s"], of_server), access).await;
        let call = |more: Value| {
            let mut params = json!({
                "name": "mcp__s__ask", "arguments": {},
                "_meta": { "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } },
            });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            web.reply(stateless("/mcp", ANA, "tools/call", params))
        };
        let first = call(json!({})).await.message()["result"].clone();
        assert_eq!(first["resultType"], "input_required", "{first}");
        assert_eq!(call(json!({})).await.status, 429, "another call has no place");
        let key = first["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let response = json!({ "action": "accept", "content": { "name": "Ana" } });
        let more = json!({
            "requestState": first["requestState"], "inputResponses": { key.as_str(): response },
        });
        let done = call(more).await;
        assert_eq!(done.status, 200, "{done:?}");
        assert!(done.body.contains("Ana"), "{done:?}");
        web.end().await;
    }
}

#[tokio::test]
async fn a_server_asks_the_client_of_a_call_whatever_the_versions() {
    let can = json!({ "elicitation": {} });
    for (era, of_server) in pairs() {
        let gateway = gateway(&["s"], of_server);
        let access = Access::new().fence(Fence::Off);
        let (mut client, _) = Raw::of(&gateway, era, access, can.clone()).await;
        let mut answer = client.call("ask", json!({})).await;
        if era == Era::Stateless {
            assert_eq!(answer["resultType"], "input_required", "{answer}");
            let requests = answer["inputRequests"].as_object().unwrap();
            let (key, request) = requests.iter().next().unwrap();
            assert_eq!(request["params"]["message"], "Who?");
            assert_eq!(request["params"]["_meta"]["toolcrib/server"], "s");
            let response = json!({ "action": "accept", "content": { "name": "Ana" } });
            let state = answer["requestState"].clone();
            let round = json!({ "requestState": state, "inputResponses": { key: response } });
            // Bound to the arguments, and used once.
            let mut other = round.clone();
            other["arguments"] = json!({ "other": 1 });
            assert_eq!(client.call("ask", other).await["code"], -32602);
            answer = client.call("ask", round.clone()).await;
            assert_eq!(client.call("ask", round).await["code"], -32602);
        } else {
            let asked = client.heard.pop_front().unwrap();
            assert_eq!(asked["method"], "elicitation/create");
            assert_eq!(asked["params"]["_meta"]["toolcrib/server"], "s");
        }
        assert_eq!(answer["content"][0]["text"], "hi Ana", "{era:?} {of_server:?}: {answer}");
    }
}

/// A read by the link went to the first server with that URI, or with a template for it.
#[tokio::test]
async fn a_link_is_read_from_the_server_whose_result_has_it() {
    for (era, of_server) in pairs() {
        let denied = Rule::deny("not of s").tools(["mcp__s__resources"]);
        let gateway = gateway_under(denied, &["s", "t"], of_server).build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        client.ask("resources/list", json!({})).await;
        client.ask("resources/templates/list", json!({})).await;
        let result = client.ask("tools/call", json!({ "name": "mcp__t__link" })).await;
        let links = result["content"].as_array().unwrap().iter();
        let uris: Vec<_> = links.map(|link| link["uri"].as_str().unwrap().to_owned()).collect();
        assert_eq!(uris, ["mcp:t/test://open", "test://of/9"], "{era:?} {of_server:?}");
        for uri in uris {
            let read = client.ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(read["contents"][0]["uri"], uri, "{read}");
        }
    }
}

/// A denied prompt, and denied resources, were a server that cannot be reached.
#[tokio::test]
async fn denied_prompts_and_resources_do_not_exist() {
    for (era, of_server) in pairs() {
        let denied = Rule::deny("nothing").toolsets(["mcp.prompts", "mcp.resources"]);
        let gateway = gateway_under(denied, &["s"], of_server).build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let got = client.ask("prompts/get", json!({ "name": "mcp__s__greet" })).await;
        assert_eq!(got["code"], -32602, "{got}");
        let read = client.ask("resources/read", json!({ "uri": "test://open" })).await;
        let code = if era == Era::Sessions { -32002 } else { -32602 };
        assert_eq!(read["code"], code, "{read}");
    }
}

/// A server whose connections end, and begin no more, once it has left.
fn leaving(name: &str, era: Era, has_left: &CancellationToken) -> McpClient {
    let has_left = has_left.clone();
    let open = move || {
        if has_left.is_cancelled() {
            return Err(std::io::Error::other("it has left"));
        }
        let (near, far) = tokio::io::duplex(1 << 16);
        let has_left = has_left.clone();
        tokio::spawn(async move { has_left.run_until_cancelled(serve(far, era)).await });
        Ok(near)
    };
    pipe_mcp_client(name.to_owned(), open).build().unwrap()
}

/// Its methods were unknown, although the client had been told that they exist.
#[tokio::test]
async fn a_server_that_is_away_keeps_its_lists() {
    for (era, of_server) in pairs() {
        let has_left = CancellationToken::new();
        let server = leaving("s", of_server, &has_left);
        let engine = engine().provider(Arc::new(server.clone())).build().unwrap();
        let gateway = Gateway::builder(engine).watch(&server).build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let lists = [
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ];
        let mut before = Vec::new();
        for (method, field) in lists {
            before.push(client.ask(method, json!({})).await[field].clone());
        }
        has_left.cancel();
        for ((method, field), before) in lists.into_iter().zip(before) {
            let now = client.ask(method, json!({})).await;
            assert_eq!(now[field], before, "{era:?} {of_server:?} {method}: {now}");
        }
        for (method, params) in [
            ("resources/read", json!({ "uri": "test://open" })),
            ("prompts/get", json!({ "name": "mcp__s__greet" })),
        ] {
            let failed = client.ask(method, params).await;
            assert_eq!(failed["code"], -32603, "{method}: {failed}");
        }
    }
}

/// A gateway to a server that hangs, and then `s`.
fn with_one_that_hangs(era: Era) -> Gateway {
    let open = || {
        let (near, far) = tokio::io::duplex(1 << 16);
        // It is open, and never read.
        tokio::spawn(async move {
            let _far = far;
            std::future::pending::<()>().await;
        });
        Ok(near)
    };
    let hangs = pipe_mcp_client("h", open).build().unwrap();
    let good = server("s", era);
    let engine = engine().provider(Arc::new(hangs.clone())).provider(Arc::new(good.clone()));
    Gateway::builder(engine.build().unwrap()).watch(&hangs).watch(&good).build()
}

/// Without a list before, each waited for all servers to answer.
#[tokio::test(start_paused = true)]
async fn what_a_server_lists_is_found_while_another_one_hangs() {
    let argument = json!({ "name": "a", "value": "r" });
    let prompt = json!({ "type": "ref/prompt", "name": "mcp__s__greet" });
    for (method, params, field) in [
        ("completion/complete", json!({ "ref": prompt, "argument": argument }), "completion"),
        ("prompts/get", json!({ "name": "mcp__s__greet" }), "messages"),
        ("resources/read", json!({ "uri": "test://open" }), "contents"),
        ("resources/read", json!({ "uri": "test://of/7" }), "contents"),
    ] {
        for (era, of_server) in pairs() {
            let gateway = with_one_that_hangs(of_server);
            let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
            let began = tokio::time::Instant::now();
            let got = client.ask(method, params.clone()).await;
            assert!(!got[field].is_null(), "{method} {era:?} {of_server:?}: {got}");
            assert!(began.elapsed().as_millis() < 200, "{method}: {:?}", began.elapsed());
        }
    }
}

/// Each read and each prompt waited for all servers to answer.
#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_delays_nothing_of_others() {
    for (era, of_server) in pairs() {
        let gateway = with_one_that_hangs(of_server);
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        for method in ["resources/list", "resources/templates/list", "prompts/list"] {
            client.ask(method, json!({})).await;
        }
        let began = tokio::time::Instant::now();
        let argument = json!({ "name": "a", "value": "r" });
        for of in [
            json!({ "type": "ref/prompt", "name": "mcp__s__greet" }),
            json!({ "type": "ref/resource", "uri": "test://of/{id}" }),
        ] {
            let params = json!({ "ref": of, "argument": argument });
            let completed = client.ask("completion/complete", params).await;
            assert_eq!(completed["completion"]["values"], json!(["red"]), "{completed}");
        }
        for uri in ["test://open", "test://of/7"] {
            let read = client.ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(read["contents"][0]["uri"], uri, "{era:?} {of_server:?}: {read}");
        }
        let got = client.ask("prompts/get", json!({ "name": "mcp__s__greet" })).await;
        assert!(got["messages"].is_array(), "{got}");
        assert!(began.elapsed().as_millis() < 200, "{:?}", began.elapsed());
    }
}

/// A name without the server's prefix was that of another server's tool.
#[tokio::test]
async fn no_tool_is_shown_under_another_servers_name() {
    for (era, of_server) in pairs() {
        let other = Rule::deny("nothing of it").tools(["mcp__t__*"]);
        let gateway = gateway_under(other, &["s", "t"], of_server).prefix("s", "").build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let tools = client.ask("tools/list", json!({})).await;
        let names = tools["tools"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"mixed") && names.contains(&"mcp__s__mcp__t__mixed"), "{names:?}");
        let called = client.ask("tools/call", json!({ "name": "mcp__t__mixed" })).await;
        assert_eq!(called["code"], -32602, "{called}");
    }
}

/// A few megabytes of nested lists took gigabytes, and an async worker for seconds.
#[tokio::test]
async fn messages_have_a_limited_number_of_values() {
    for (era, of_server) in pairs() {
        let gateway = gateway(&["s"], of_server);
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let refused = client.ask("ping", json!({ "x": vec![json!([[]]); 60_000] })).await;
        assert_eq!(refused["code"], -32600, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("100000 values"), "{refused}");
        let result = client.call("many", json!({})).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(client.call("mixed", json!({})).await["content"].is_array());
    }
}

#[tokio::test]
async fn a_subscription_that_a_server_refuses_is_an_error_and_no_change_is_invented() {
    for of_server in ERAS {
        let gateway = gateway(&["s"], of_server);
        let (mut client, _) = Raw::of(&gateway, Era::Sessions, Access::new(), json!({})).await;
        let unknown = client.ask("resources/subscribe", json!({ "uri": "test://of/9" })).await;
        assert_eq!(unknown["code"], -32601, "{of_server:?}: {unknown}");
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        client.ask("ping", json!({})).await;
        assert!(client.heard.is_empty(), "{of_server:?}: {:?}", client.heard);
    }
}

#[tokio::test]
async fn a_subscription_that_begins_again_counts_as_a_change() {
    let gateway = gateway(&["s"], Era::Stateless);
    let (mut client, _) = Raw::of(&gateway, Era::Sessions, Access::new(), json!({})).await;
    let begun = client.ask("resources/subscribe", json!({ "uri": "test://open" })).await;
    assert_eq!(begun, json!({}));
    let told = tokio::time::timeout(Duration::from_secs(300), client.read()).await.unwrap();
    let updated = "notifications/resources/updated";
    assert_eq!((&told["method"], &told["params"]["uri"]), (&updated.into(), &"test://open".into()));
}
