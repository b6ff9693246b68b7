//! The access of Rust tools: their declarations, within the host's grants.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_capabilities::{
    HostCapabilities,
    files::{FileFolders, Files, FilesSpec},
    http::{HttpClient, HttpError, HttpRequest, Method, parse_url},
    process::{ProcessError, ProcessSpec, Processes, find_program},
};
use toolcrib_core::{
    Capabilities, CapabilityGranter, Digest, ErrorCode, Identity, NetworkRules, PendingCall, Tool,
    ToolContext, ToolContextParts, ToolError,
};

fn grant(reach: &HostCapabilities, capabilities: Capabilities) -> Result<ToolContext, ToolError> {
    grant_in(reach, capabilities, ToolContextParts::detached())
}

fn grant_in(
    reach: &HostCapabilities,
    capabilities: Capabilities,
    parts: ToolContextParts,
) -> Result<ToolContext, ToolError> {
    let tool = Tool::builder("t")
        .description("A tool.")
        .capabilities(capabilities)
        .handler(|_: Value, _: ToolContext| async { "ran" })
        .unwrap();
    let call = PendingCall {
        tool: &tool,
        call_id: &Arc::from("c"),
        args: &json!({}),
        args_digest: Digest::of("c"),
        identity: &Identity::conversation("c"),
        turn_id: &Arc::from("r"),
        personality: &Arc::from("default"),
    };
    reach.grant(call, parts.into())
}

fn everything() -> HostCapabilities {
    HostCapabilities::nothing().http(HttpClient::builder().build()).processes(Processes::any())
}

#[tokio::test]
async fn a_handle_is_narrowed_to_what_the_tool_declares() {
    let declared = Capabilities::none().network(["*.example.com"]).process(["true"]);
    let cx = grant(&everything(), declared).unwrap();

    let asked = HttpRequest::new(Method::GET, parse_url("http://other.test/").unwrap());
    let client = cx.handle::<HttpClient>().unwrap();
    let refused = client.send(asked, cx.cancellation()).await.unwrap_err();
    assert!(matches!(refused, HttpError::HostNotAllowed { .. }), "{refused}");

    let processes = cx.handle::<Processes>().unwrap();
    let root = std::path::Path::new("/");
    let run = |name: &str| {
        let spec = ProcessSpec::new(find_program(name, root).unwrap(), "/");
        processes.run(spec, cx.cancellation(), |_, _| {})
    };
    assert!(run("true").await.is_ok());
    assert!(matches!(run("false").await, Err(ProcessError::NotAllowed { .. })));
}

#[tokio::test]
async fn a_personality_narrows_the_network_of_a_handle_and_a_broken_rule_hands_out_none() {
    let under = |deny: &str| {
        let network = NetworkRules { allow: None, deny: vec![deny.into()] };
        let parts = ToolContextParts { network: Arc::new(network), ..ToolContextParts::detached() };
        grant_in(&everything(), Capabilities::none().network(["*.example.com"]), parts)
    };
    let cx = under("a.example.com").unwrap();
    let asked = HttpRequest::new(Method::GET, parse_url("http://a.example.com/").unwrap());
    let client = cx.handle::<HttpClient>().unwrap();
    let refused = client.send(asked, cx.cancellation()).await.unwrap_err();
    assert!(matches!(refused, HttpError::HostNotAllowed { .. }), "{refused}");

    let error = under("https://a").map(drop).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotAvailable);
    assert!(error.cause_chain().unwrap().contains("a rule of the personality"), "{error:?}");
}

#[test]
fn what_is_not_declared_is_not_handed_out() {
    let cx = grant(&everything(), Capabilities::none()).unwrap();
    assert_eq!(cx.handle::<HttpClient>().map(drop).unwrap_err().code, ErrorCode::NotAvailable);
    assert!(cx.handle::<Processes>().is_err());
}

#[test]
fn what_the_host_does_not_grant_keeps_the_tool_from_running() {
    let cases = [
        (
            HostCapabilities::nothing(),
            Capabilities::none().network(["a.test"]),
            "no network is set up",
        ),
        (
            HostCapabilities::nothing(),
            Capabilities::none().process(["true"]),
            "no programs are set up",
        ),
        (everything(), Capabilities::none().network(["https://a.test"]), "is not a valid host"),
        (everything(), Capabilities::none().process(["no-such-program"]), "no program"),
    ];
    for (reach, declared, cause) in cases {
        let error = grant(&reach, declared).map(drop).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotAvailable);
        assert!(error.cause_chain().unwrap().contains(cause), "{error:?}");
    }
}

#[tokio::test]
async fn a_tool_gets_no_more_than_the_host_has() {
    let true_ = find_program("true", std::path::Path::new("/")).unwrap();
    let granted = HostCapabilities::nothing().processes(Processes::any().only([&true_]));
    let cx = grant(&granted, Capabilities::none().process(["true", "false"])).unwrap();
    let other = ProcessSpec::new(find_program("false", std::path::Path::new("/")).unwrap(), "/");
    let outcome = cx.handle::<Processes>().unwrap().run(other, cx.cancellation(), |_, _| {}).await;
    assert!(matches!(outcome, Err(ProcessError::NotAllowed { .. })));
}

#[tokio::test]
async fn folders_are_granted_as_they_are_declared() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| Files::open(FilesSpec::new(name, dir.path())).unwrap();
    let writable = Files::open(FilesSpec::new("notes", dir.path()).writable()).unwrap();
    let host = HostCapabilities::nothing().files(writable).files(open("docs"));
    let cx = grant(&host, Capabilities::none().files(["docs"]).write_files(["notes"])).unwrap();
    let folders = cx.handle::<FileFolders>().unwrap();
    assert!(folders.get("docs").unwrap().is_read_only());
    folders.get("notes").unwrap().write(&cx, "a.md", "x").await.unwrap();
    assert_eq!(folders.get("docs").unwrap().read_text(&cx, "a.md").await.unwrap(), "x");
    assert_eq!(folders.get("other").map(drop).unwrap_err().code, ErrorCode::NotAvailable);

    let only =
        ToolContextParts { files: Some(["docs".into()].into()), ..ToolContextParts::detached() };
    for (declared, parts, cause) in [
        (Capabilities::none().files(["more"]), ToolContextParts::detached(), "no folder `more`"),
        (Capabilities::none().write_files(["docs"]), ToolContextParts::detached(), "is read-only"),
        (Capabilities::none().files(["notes"]), only, "the personality does not reach"),
    ] {
        let error = grant_in(&host, declared, parts).map(drop).unwrap_err();
        assert!(error.cause_chain().unwrap().contains(cause), "{error:?}");
    }
    let none = grant(&host, Capabilities::none()).unwrap();
    assert!(none.handle::<FileFolders>().is_err());
}
