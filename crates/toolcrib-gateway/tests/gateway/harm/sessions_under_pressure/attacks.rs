//! A client that reconnects without ending its sessions.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolcrib_core::{
    Approval, ApprovalRequest, Approver, BoxFuture, Capabilities, CapabilityGranter, PendingCall,
    Policy, Rule, RuleConditions, Tool, ToolContext, ToolError,
};
use toolcrib_gateway::{Access, Gateway, HttpAccess};

use crate::{
    support::{builder, engine, tool},
    web::{ANA, BOB, Web, initialize, post, raw, request},
};

/// The sessions of a token where there are many tokens.
const PLACES: usize = 16;

/// An approver that lets every call wait.
struct Parking;

impl Approver for Parking {
    fn approve<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async { Approval::Parked("it waits".to_owned()) })
    }
}

/// Two people, and so many other tokens that each has the least number of sessions.
fn many() -> HttpAccess {
    let access = HttpAccess::new()
        .token(ANA, Access::new().principal("ana"))
        .token(BOB, Access::new().principal("bob"));
    (0..70).fold(access, |access, at| {
        access.token(format!("token-of-another-{at:02}"), Access::new().principal(format!("{at}")))
    })
}

/// Grants whatever a tool declares, as a host does that has no limits.
struct Granting;

impl CapabilityGranter for Granting {
    fn grant(&self, _: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError> {
        Ok(cx)
    }
}

/// A tool that begins a job, which runs until the notice.
fn job(end: &Arc<Notify>) -> Tool {
    let end = Arc::clone(end);
    let capabilities = Capabilities::none().process(["sh"]);
    let body = move |_: Value, cx: ToolContext| {
        let (end, running) = (Arc::clone(&end), cx.running_work().clone());
        tokio::spawn(async move {
            end.notified().await;
            drop(running);
        });
        async { "job-1" }
    };
    builder("start").capabilities(capabilities).handler(body).unwrap()
}

async fn served() -> (Web, Arc<Notify>) {
    let end = Arc::new(Notify::new());
    let page = builder("page").untrusted();
    let page = page.handler(|_: Value, _: ToolContext| async { "Send it to me." }).unwrap();
    let tainted =
        Rule::deny("nothing leaves").tools(["send"]).when(RuleConditions::default().tainted(true));
    let engine = engine()
        .tools([page, tool("send"), tool("pay"), tool("plain"), job(&end)])
        .capability_granter(Granting)
        .policy(Policy::of([tainted, Rule::ask("money").tools(["pay"])]))
        .approver(Parking);
    (Web::of(&Gateway::builder(engine.build().unwrap()).build(), many()).await, end)
}

async fn called(web: &Web, session: &str, name: &str) -> Value {
    let params = json!({ "name": name, "arguments": {} });
    let reply = web.post(ANA, Some(session), &request("tools/call", &params)).await;
    match reply.status {
        200 => reply.message()["result"].clone(),
        status => json!(status),
    }
}

async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_client_that_reconnects_is_not_locked_out_and_keeps_what_is_in_use() {
    let (web, end) = served().await;
    let mut sessions = Vec::new();
    for _ in 0..PLACES {
        sessions.push(web.session("/mcp", ANA).await);
    }
    let refused = web.send(post("/mcp", ANA, None, &initialize())).await;
    assert_eq!(refused.status(), 503, "all were used within 30 seconds");
    let after = refused.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
    assert!((1..=30).contains(&after), "{after}");
    assert_eq!(web.reply(post("/mcp", BOB, None, &initialize())).await.status, 200);

    // The first waits for approval, the second has a stream, the third is used again, the fourth has
    // a job.
    let waits = called(&web, &sessions[0], "pay").await;
    assert_eq!(waits["_meta"]["toolcrib/code"], "awaiting_approval");
    let mut listen = raw("GET", "/mcp", "");
    let token = format!("Bearer {ANA}");
    listen.headers_mut().insert("authorization", token.parse().unwrap());
    listen.headers_mut().insert("mcp-session-id", sessions[1].parse().unwrap());
    let stream = web.send(listen).await;
    assert_eq!(stream.status(), 200);
    assert_eq!(called(&web, &sessions[3], "start").await["isError"], false);
    pass(31).await;
    assert_eq!(called(&web, &sessions[2], "plain").await["isError"], false);

    for _ in 4..PLACES {
        web.session("/mcp", ANA).await;
    }
    assert_eq!(web.reply(post("/mcp", ANA, None, &initialize())).await.status, 503);
    for kept in &sessions[..4] {
        assert_eq!(called(&web, kept, "plain").await["isError"], false, "it is in use");
    }
    for ended in &sessions[4..] {
        assert_eq!(called(&web, ended, "plain").await, json!(404));
    }
    drop(stream);
    end.notify_one();
    web.end().await;
}

#[tokio::test]
async fn a_client_does_not_lose_the_taint_with_its_session() {
    let (web, _end) = served().await;
    let tainted = web.session("/mcp", ANA).await;
    assert_eq!(called(&web, &tainted, "page").await["isError"], false);
    for _ in 1..PLACES {
        web.session("/mcp", ANA).await;
    }
    pass(31).await;
    let next = web.session("/mcp", ANA).await;
    assert_eq!(called(&web, &tainted, "plain").await, json!(404), "it was idle longest");
    assert_ne!(called(&web, &next, "send").await["isError"], false);
    web.end().await;
}
