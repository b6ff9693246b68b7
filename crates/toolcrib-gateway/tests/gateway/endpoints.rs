//! Endpoints with separate menus, `/mcp/NAME`.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_engine::{Deferral, EngineBuilder, Personality};
use toolcrib_gateway::{Access, Gateway, GatewayBuilder, GatewayError, HttpAccess};

use super::{
    support::{ERAS, Era, Log, billing, engine, tool},
    web::{ANA, BOB, Reply, Web, initialize, names, post, raw, request, stateless, two},
    whole::server,
};

/// What `desk` admits: the server `t` and the tool `read`. It has no skills.
fn desk() -> Personality {
    Personality::new("desk").mcp_servers(["t"]).toolset(["read"]).exclude(["read_skill"])
}

fn world(of_server: Era) -> GatewayBuilder {
    let servers = ["s", "t"].map(|name| server(name, of_server));
    let deferral = Deferral::new().tools(["mcp__?__meta", "refund"]);
    let engine = engine().tools([tool("read"), tool("refund")]).skills(billing());
    let engine = engine.personality(desk()).defer(deferral);
    let provided =
        |engine: EngineBuilder, server: &_| engine.provider(Arc::new(Clone::clone(server)));
    let engine = servers.iter().fold(engine, provided);
    servers.iter().fold(Gateway::builder(engine.build().unwrap()), GatewayBuilder::watch)
}

fn with_desk() -> HttpAccess {
    two().endpoint("front", "desk")
}

/// A client of one endpoint.
struct Client<'a> {
    web: &'a Web,
    path: &'a str,
    session: Option<String>,
}

impl<'a> Client<'a> {
    async fn of(web: &'a Web, path: &'a str, era: Era) -> Self {
        let session = match era {
            Era::Sessions => Some(web.session(path, ANA).await),
            Era::Stateless => None,
        };
        Self { web, path, session }
    }

    async fn reply(&self, method: &str, params: Value) -> Reply {
        let name = params["uri"].as_str().map(str::to_owned);
        let mut message = match &self.session {
            None => stateless(self.path, ANA, method, params),
            Some(session) => post(self.path, ANA, Some(session), &request(method, &params)),
        };
        if let Some(name) = name {
            message.headers_mut().insert("mcp-name", name.parse().unwrap());
        }
        self.web.reply(message).await
    }

    /// The result or the error of a request.
    async fn ask(&self, method: &str, params: Value) -> Value {
        let message = self.reply(method, params).await.message();
        let part = if message["error"].is_object() { "error" } else { "result" };
        message[part].clone()
    }
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

#[tokio::test]
async fn what_an_endpoint_does_not_offer_can_be_used_there_by_no_door() {
    for era in ERAS {
        let web = Web::of(&world(era).build(), with_desk()).await;
        let front = Client::of(&web, "/mcp/front", era).await;
        let all = Client::of(&web, "/mcp", era).await;
        let offered = names(&front.reply("tools/list", json!({})).await);
        assert!(offered.contains(&"read".to_owned()), "{offered:?}");
        assert!(!offered.iter().any(|name| name.contains("__s__")), "{offered:?}");
        let of_all = names(&all.reply("tools/list", json!({})).await);
        assert!(of_all.contains(&"mcp__s__mixed".to_owned()), "{of_all:?}");

        let denied = [
            ("tools/call", call("mcp__s__mixed", &json!({}))),
            ("tools/call", call("refund", &json!({}))),
            ("tools/call", call("call_tool", &json!({ "tool": "mcp__s__meta", "arguments": {} }))),
            ("tools/call", call("call_tool", &json!({ "tool": "refund", "arguments": {} }))),
            ("prompts/get", json!({ "name": "mcp__s__greet" })),
            ("skills/get", json!({ "uri": "skill://billing/SKILL.md" })),
            (
                "completion/complete",
                json!({
                    "ref": { "type": "ref/prompt", "name": "mcp__s__greet" },
                    "argument": { "name": "a", "value": "" },
                }),
            ),
        ];
        for (method, params) in denied {
            let shown = format!("{era:?}: {method} {params}");
            let refused = front.ask(method, params.clone()).await;
            let is_refused = refused["code"].is_i64() || refused["isError"] == true;
            assert!(is_refused, "{shown}: {refused}");
        }
        for (method, params) in [
            ("tools/call", call("mcp__t__mixed", &json!({}))),
            ("tools/call", call("call_tool", &json!({ "tool": "mcp__t__meta", "arguments": {} }))),
            ("prompts/get", json!({ "name": "mcp__t__greet" })),
            ("resources/read", json!({ "uri": "test://open" })),
        ] {
            let shown = format!("{era:?}: {method} {params}");
            let answer = front.ask(method, params).await;
            assert!(answer["code"].is_null() && answer["isError"] != true, "{shown}: {answer}");
        }
        let of_s = json!({ "uri": "mcp:s/test://open" });
        let read = front.ask("resources/read", of_s).await.to_string();
        assert!(!read.contains("mcp__s__"), "{era:?}: {read}");
        // The server `t` may answer for any URI.
        let skill = json!({ "uri": "skill://billing/SKILL.md" });
        let read = front.ask("resources/read", skill.clone()).await.to_string();
        assert!(!read.contains("How to do billing"), "{era:?}: {read}");
        let read = all.ask("resources/read", skill).await.to_string();
        assert!(read.contains("How to do billing"), "{era:?}: {read}");
        let prompts = front.ask("prompts/list", json!({})).await.to_string();
        assert!(!prompts.contains("mcp__s__") && prompts.contains("mcp__t__"), "{prompts}");
        // Both servers have this resource: here it is the other one's.
        let resources = front.ask("resources/list", json!({})).await["resources"].clone();
        assert!(!resources.to_string().contains("skill://"), "{resources}");
        assert_eq!(resources[0]["uri"], "test://open", "{resources}");
        web.end().await;
    }
}

#[tokio::test]
async fn a_session_belongs_to_its_endpoint() {
    let web = Web::of(&world(Era::Stateless).build(), with_desk()).await;
    for (own, other) in [("/mcp", "/mcp/front"), ("/mcp/front", "/mcp")] {
        let session = web.session(own, ANA).await;
        let lists = request("tools/list", &json!({}));
        let elsewhere = web.reply(post(other, ANA, Some(&session), &lists)).await;
        assert_eq!(elsewhere.status, 404, "{own}: {elsewhere:?}");
        assert!(elsewhere.body.contains("begin another one"), "{elsewhere:?}");
        for method in ["GET", "DELETE"] {
            let mut request = post(other, ANA, Some(&session), &json!({}));
            *request.method_mut() = method.parse().unwrap();
            assert_eq!(web.reply(request).await.status, 404, "{own}: {method}");
        }
        assert_eq!(web.reply(post(own, ANA, Some(&session), &lists)).await.status, 200, "{own}");
    }
    web.end().await;
}

#[tokio::test]
async fn a_token_with_a_personality_of_its_own_never_gets_another_one() {
    let access = HttpAccess::new()
        .token(ANA, Access::new().principal("ana").personality("narrow"))
        .token(BOB, Access::new().principal("bob").personality("desk"))
        .endpoint("front", "desk");
    let narrow = Personality::new("narrow").toolset::<&str>([]);
    let engine =
        engine().tools([tool("read"), tool("pay")]).personality(desk()).personality(narrow);
    let log = Log::default();
    let gateway = Gateway::builder(engine.build().unwrap()).access_log(log.listener()).build();
    let web = Web::of(&gateway, access).await;
    let lists = |token| stateless("/mcp/front", token, "tools/list", json!({}));
    let refused = web.reply(lists(ANA)).await;
    assert_eq!((refused.status, refused.body.contains("desk")), (403, false), "{refused:?}");
    assert_eq!(names(&web.reply(lists(BOB)).await), ["read"]);
    assert_eq!(log.of("tools/list")[0]["endpoint"], "front");
    let refused = &log.of("http")[0];
    assert_eq!((&refused["status"], &refused["principal"]), (&json!(403), &json!("ana")));
    assert!(refused["error"].as_str().unwrap().contains("`narrow`"), "{refused}");
    web.end().await;
}

#[tokio::test]
async fn an_unknown_endpoint_and_an_invalid_name_are_refused() {
    let web = Web::of(&world(Era::Stateless).build(), with_desk()).await;
    for path in ["/mcp/Front", "/mcp/back", "/mcp/front/", "/mcp/skill", "/mcp/fron%74", "/mcp/"] {
        let reply = web.reply(stateless(path, ANA, "tools/list", json!({}))).await;
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
        assert!(reply.body.contains("`/mcp`"), "{path}: {reply:?}");
        let unknown =
            web.reply(stateless(path, "no-token-0123456789", "tools/list", json!({}))).await;
        assert_eq!(unknown.status, 401, "{path}");
    }
    web.end().await;
    for name in ["", "skill", "a/b", "ü", &"x".repeat(65)] {
        let web = Web::of(&world(Era::Stateless).build(), two().endpoint(name, "desk")).await;
        let served = web.served.await.unwrap();
        assert!(matches!(served, Err(GatewayError::Endpoint(_))), "{name}: {served:?}");
    }
    let web = Web::of(&world(Era::Stateless).build(), two().endpoint("a", "nobody")).await;
    let served = web.served.await.unwrap();
    assert!(matches!(served, Err(GatewayError::Access(_))), "{served:?}");
}

#[tokio::test]
async fn another_configuration_replaces_endpoints_and_ends_their_sessions() {
    let gateway = world(Era::Stateless).build();
    let web = Web::of(&gateway, with_desk()).await;
    let session = web.session("/mcp/front", ANA).await;
    let lists = |path| post(path, ANA, Some(&session), &request("tools/list", &json!({})));
    let replaced = |endpoint, personality| {
        let access = two().endpoint(endpoint, personality);
        let next = Gateway::builder(gateway.engine());
        drop(gateway.replace(next, Some(&access)).unwrap());
    };
    replaced("front", "desk");
    assert_eq!(web.reply(lists("/mcp/front")).await.status, 200);
    replaced("front", "default");
    let ended = web.reply(lists("/mcp/front")).await;
    assert_eq!(ended.status, 404, "it has another menu: {ended:?}");
    replaced("back", "desk");
    assert_eq!(web.reply(lists("/mcp/front")).await.status, 404);
    let begun = web.reply(post("/mcp/back", ANA, None, &initialize())).await;
    assert_eq!(begun.status, 200);
    web.end().await;
}

#[tokio::test]
async fn metrics_count_calls_by_principal_and_tool() {
    let web = Web::of(&world(Era::Stateless).build(), with_desk()).await;
    for (path, name) in [
        ("/mcp", "read"),
        ("/mcp/front", "read"),
        ("/mcp/front", "pay"),
        ("/mcp", "mcp__s__nothing"),
    ] {
        let call = call(name, &json!({}));
        web.reply(stateless(path, ANA, "tools/call", call)).await;
    }
    let mut get = raw("GET", "/metrics", "");
    get.headers_mut().insert("authorization", format!("Bearer {ANA}").parse().unwrap());
    let text = tokio::time::timeout(Duration::from_secs(300), web.reply(get)).await.unwrap().body;
    let of = |tool: &str, outcome: &str, n: u32| {
        let labels = format!("tenant=\"\",principal=\"ana\",tool=\"{tool}\",outcome=\"{outcome}\"");
        let line = format!("toolcrib_calls_by_principal_total{{{labels}}} {n}");
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    };
    of("read", "ok", 2);
    of("mcp__s__nothing", "ok", 1);
    of("unknown", "not_available", 1);
    web.end().await;
}
