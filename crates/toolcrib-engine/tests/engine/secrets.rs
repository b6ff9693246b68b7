//! Secrets and capabilities: a body has those that its tool declares, and no output reveals them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolcrib_core::{
    CallDecision, Capabilities, CapabilityGranter, ContentBlock, ErrorCode, PendingCall, Secret,
    SecretError, Secrets, Tool, ToolContext, ToolError, ToolOutput, call_middleware, secrets_fn,
    static_tools,
};

use toolcrib_engine::{BuildError, Limits, PluginRegistrar, Redactor};

use crate::{
    plugins::Brings,
    support::{Log, batch, builder, call, engine, once, says},
};

/// A vault of one secret, which counts how often it is asked.
#[derive(Clone, Default)]
struct Vault(Arc<AtomicUsize>);

impl Secrets for Vault {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match name {
                "KEY" => Ok(Secret::new("hunter22")),
                "SHORT" => Ok(Secret::new("abc")),
                _ => Err(SecretError::Unknown { name: name.into() }),
            }
        })
    }
}

/// A tool that requests one secret, declares others, and reveals it in every output.
fn telltale(asks: &'static str, declares: &[&'static str]) -> Tool {
    builder("telltale")
        .capabilities(Capabilities::none().secrets(declares.iter().copied()))
        .handler(move |_: Value, cx: ToolContext| async move {
            let secret = cx.secret(asks).await?;
            assert_eq!(format!("{secret:?}"), "Secret(…)");
            Ok::<_, ToolError>(json!({ "told": secret.expose() }))
        })
        .unwrap()
}

#[tokio::test]
async fn a_secret_that_was_resolved_is_redacted_from_then_on() {
    let engine =
        engine().tool(telltale("KEY", &["KEY"])).secrets(Vault::default()).build().unwrap();
    let log = Log::of(engine.events());
    let result = once(&engine, "telltale", json!({})).await;
    assert_eq!(&*result.text, r#"{"told":"[redacted]"}"#);
    assert_eq!(result.structured, Some(json!({ "told": "[redacted]" })));
    assert!(!json!(log.events()).to_string().contains("hunter22"));
    assert_eq!(engine.redactor().text("hunter22"), "[redacted]");
}

#[tokio::test]
async fn what_is_not_declared_or_cannot_be_had_is_not_available() {
    let build = |tool: Tool| engine().tool(tool).secrets(Vault::default()).build().unwrap();
    let cases = [
        (build(telltale("KEY", &[])), "the tool does not declare the secret `KEY`"),
        (build(telltale("KEY", &["OTHER"])), "the tool does not declare the secret `KEY`"),
        (build(telltale("GONE", &["GONE"])), "secret `GONE` does not exist"),
        (build(telltale("SHORT", &["SHORT"])), "fewer than 4 characters"),
        // A provider's tool cannot be refused before it is called.
        (
            engine().provider(static_tools([telltale("KEY", &["KEY"])])).build().unwrap(),
            "no source of secrets",
        ),
    ];
    for (engine, cause) in cases {
        let result = once(&engine, "telltale", json!({})).await;
        assert_eq!(result.code, Some(ErrorCode::NotAvailable));
        assert!(!result.text.contains("KEY") && !result.text.contains("GONE"), "{}", result.text);
        assert!(result.cause.as_deref().unwrap().contains(cause), "{:?}", result.cause);
    }
}

#[tokio::test]
async fn a_call_that_is_denied_asks_for_no_secret() {
    let vault = Vault::default();
    let engine = engine()
        .tool(telltale("KEY", &["KEY"]))
        .secrets(vault.clone())
        .middleware(call_middleware("no", |_| Ok(CallDecision::Deny("no".into()))))
        .build()
        .unwrap();
    assert!(!once(&engine, "telltale", json!({})).await.is_ok());
    assert_eq!(vault.0.load(Ordering::Relaxed), 0);
}

/// A capability granter for tests.
struct Hosts(Vec<String>);

struct HandsOut;

impl CapabilityGranter for HandsOut {
    fn grant(&self, call: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError> {
        let hosts = &call.tool.capabilities().network;
        Ok(if hosts.is_empty() {
            cx
        } else {
            cx.with_handle(Hosts(hosts.iter().map(ToString::to_string).collect()))
        })
    }
}

fn dialer(capabilities: Capabilities) -> Tool {
    builder("dial")
        .capabilities(capabilities)
        .handler(|_: Value, cx: ToolContext| async move {
            Ok::<_, ToolError>(cx.handle::<Hosts>()?.0.join(" "))
        })
        .unwrap()
}

#[tokio::test]
async fn a_handle_reaches_as_far_as_the_tool_declares() {
    let hosts = Capabilities::none().network(["api.example.com"]);
    let granted =
        engine().tool(dialer(hosts.clone())).capability_granter(HandsOut).build().unwrap();
    assert_eq!(&*once(&granted, "dial", json!({})).await.value, "api.example.com");

    let undeclared =
        engine().tool(dialer(Capabilities::none())).capability_granter(HandsOut).build().unwrap();
    let result = once(&undeclared, "dial", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    assert!(result.cause.as_deref().unwrap().contains("does not declare the capability"));

    // There is no capability granter: the body does not run.
    let ungranted = engine().provider(static_tools([dialer(hosts)])).build().unwrap();
    let result = once(&ungranted, "dial", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    assert!(result.cause.as_deref().unwrap().contains("no capability granter"));
}

#[test]
fn a_tool_of_the_baseline_that_nothing_can_hand_out_to_fails_the_build() {
    let secret = telltale("KEY", &["KEY", "OTHER"]);
    let network = dialer(Capabilities::none().network(["api.example.com"]).secrets(["KEY"]));
    let process = dialer(Capabilities::none().process(["git"]));
    let errors = [
        engine().tool(secret.clone()).capability_granter(HandsOut).build().unwrap_err(),
        engine().tool(network).secrets(Vault::default()).build().unwrap_err(),
        engine().tool(process.clone()).secrets(Vault::default()).build().unwrap_err(),
    ];
    insta::assert_snapshot!(errors.map(|error| error.to_string()).join("\n"));

    // A plugin's tool belongs to the baseline too.
    let brings = Brings("p", move |registrar: &mut PluginRegistrar| {
        registrar.tool(secret.clone());
        Ok(())
    });
    let error = engine().build().unwrap().with_plugin(&brings).unwrap_err();
    assert!(matches!(error, BuildError::NoSecrets { origin, .. } if &*origin == "plugin `p`"));
    assert!(engine().secrets(Vault::default()).plugin(brings).build().is_ok());
}

#[tokio::test]
async fn a_secret_that_only_cleaning_makes_whole_is_redacted_too() {
    let colored = builder("colored").untrusted().handler(|_: Value, _: ToolContext| async {
        "it is hun\u{1b}[31mter\u{1b}[0m22, or hunt\u{200b}er22"
    });
    let failing = builder("failing").untrusted().handler(|_: Value, _: ToolContext| async {
        Err::<String, _>(ToolError::failed("not hun\u{1b}[1mter22"))
    });
    let redactor = Redactor::new(["hunter22".to_owned()]);
    let engine = engine().redactor(redactor).tool(colored).tool(failing).build().unwrap();
    let log = Log::of(engine.events());
    let result = once(&engine, "colored", json!({})).await;
    assert_eq!(&*result.value, "it is [redacted], or [redacted]");
    assert_eq!(&*once(&engine, "failing", json!({})).await.value, "not [redacted]");
    assert!(!json!(log.events()).to_string().contains("hunter22"));
}

#[tokio::test]
async fn a_secret_that_only_defusing_a_token_writes_out_is_redacted_too() {
    for (secret, text, clean) in [
        ("hunter22", "<|ｈunter22|> <|x|>", "‹|[redacted]|› ‹|x|›"),
        ("‹|hunter22|›", "it is <|hunter22|>", "it is [redacted]"),
    ] {
        let tool = says(builder("t").untrusted(), text);
        let redactor = Redactor::new([secret.to_owned()]);
        let engine = engine().redactor(redactor).tool(tool).build().unwrap();
        assert_eq!(&*once(&engine, "t", json!({})).await.value, clean);
    }
}

#[tokio::test]
async fn a_secret_that_is_learned_while_results_wait_for_their_size_is_redacted_from_them() {
    // As it is, colored, one line of it, and two that overlap.
    const TOLD: &str =
        "hunter22-one, hun\u{1b}[31mter22\u{1b}[0m-one, line-two-of-it, hunter22-one-more";
    const CLEAN: &str = "[redacted], [redacted], [redacted], [redacted]";
    let long = || format!("{TOLD} {}", "x".repeat(1_000));
    let gives = builder("gives").untrusted().handler(move |_: Value, _: ToolContext| async move {
        ToolOutput::text(long())
            .structured(json!({ "hunter22-one": ["line-two-of-it"] }))
            .block(ContentBlock::text("file:///notes", TOLD))
    });
    let fails = builder("fails").untrusted().handler(move |_: Value, _: ToolContext| async move {
        Err::<String, _>(ToolError::failed(long()).caused_by("with hunter22-one"))
    });
    // Sequential, so it begins when the others have ended and have been looked at.
    let learns = builder("learns")
        .sequential()
        .capabilities(Capabilities::none().secrets(["KEY", "OTHER"]))
        .handler(|_: Value, cx: ToolContext| async move {
            cx.secret("KEY").await?;
            cx.secret("OTHER").await?;
            Ok::<_, ToolError>("learned")
        });
    let engine = engine()
        .limits(Limits { batch_result_chars: 3_000, ..Limits::default() })
        .tools([gives.unwrap(), fails.unwrap(), learns.unwrap()])
        .secrets(secrets_fn(|name| {
            let key = "hunter22-one\nline-two-of-it\nx";
            Ok(Secret::new(if name == "KEY" { key } else { "22-one-more" }))
        }))
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    let calls = ["gives", "fails", "learns"].map(|name| call(name, json!({})));
    let results = batch(&engine, calls.into()).await;
    assert_eq!(&*results[2].value, "learned");
    for result in &results[..2] {
        assert!(result.value.starts_with(&format!("{CLEAN} xxx")), "{}", result.value);
    }
    assert_eq!(results[0].structured, Some(json!({ "[redacted]": ["[redacted]"] })));
    let ContentBlock::Text { text, .. } = &results[0].blocks[0] else { panic!("a text") };
    assert_eq!(&**text, CLEAN);
    assert_eq!(results[1].cause.as_deref(), Some("with [redacted]"));
    let all = format!("{results:?} {}", json!(log.events()));
    for part in ["hunter22", "ter22", "line-two", "-more"] {
        assert!(!all.contains(part), "{part} in {all}");
    }
}
