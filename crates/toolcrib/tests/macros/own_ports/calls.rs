//! Ports that a call passes.

use std::{error::Error, sync::Arc};

use serde_json::{Value, json};
use toolcrib::{
    BoxFuture,
    event::{Audience, ChannelAdapter, Event, Journal},
    middleware::{
        CallDecision, HookResult, Middleware, PendingCall, Reducer, ReducerContext, TurnContext,
    },
    policy::{Approval, ApprovalRequest, Approver, Clarification, ClarificationOutcome},
    prelude::*,
    secrets::{Secret, SecretError, Secrets},
    tool::{Capabilities, CapabilityGranter, ToolBody, ToolResult},
};

use super::{Log, call};

/// A body with everything that its call was granted.
struct Order;

impl ToolBody for Order {
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            cx.progress(Progress::user("half"));
            cx.progress(Progress::internal("cache miss"));
            let key = cx.secret("KEY").await?;
            let Line(line) = cx.handle::<Line>()?;
            let question = Clarification::new("Which size?").options(["S", "M"]);
            let ClarificationOutcome::Answered(size) = cx.clarifier()?.clarify(question).await
            else {
                return Err(err("no person answered"));
            };
            let length = key.expose().len();
            Ok(ok(format!("{} in {size}, by line {line}, key of {length}", args["article"])))
        })
    }
}

/// A handle.
struct Line(u32);

struct Granter;

impl CapabilityGranter for Granter {
    fn grant(&self, call: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError> {
        let hosts = u32::try_from(call.tool.capabilities().network.len()).unwrap();
        Ok(cx.with_handle(Line(hosts)))
    }
}

struct Keys;

impl Secrets for Keys {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        Box::pin(async move {
            match name {
                "KEY" => Ok(Secret::new("0123456789")),
                _ => Err(SecretError::Unknown { name: name.into() }),
            }
        })
    }
}

struct Person(Log);

impl Approver for Person {
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        self.0.add(format!("approve {}", request.call.tool.name()));
        Box::pin(async { Approval::Approved })
    }

    fn clarify<'a>(&'a self, question: &'a Clarification) -> BoxFuture<'a, ClarificationOutcome> {
        self.0.add(format!("clarify {}", question.question));
        Box::pin(async { ClarificationOutcome::Answered(question.options[1].clone()) })
    }
}

struct Upper(Log);

impl Middleware for Upper {
    fn name(&self) -> &str {
        "upper"
    }

    fn call<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<CallDecision, Box<dyn Error + Send + Sync>>> {
        let article = call.args["article"].as_str().unwrap().to_uppercase();
        Box::pin(async move { Ok(CallDecision::Rewrite(json!({ "article": article }))) })
    }

    fn before_iteration<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.0.add(format!("iteration {}", cx.iteration));
        Box::pin(async { Ok(()) })
    }
}

struct Calls(Log);

impl Journal for Calls {
    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        self.0.add(format!("intent {}", call.args));
        Box::pin(async { Ok(()) })
    }

    fn outcome<'a>(
        &'a self,
        _: PendingCall<'a>,
        code: Option<ErrorCode>,
        result: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        self.0.add(format!("outcome {code:?} {}", result.is_some()));
        Box::pin(async {})
    }
}

struct Short;

impl Reducer for Short {
    fn tool_name(&self) -> &str {
        "order"
    }

    fn reduce(&self, output: ToolOutput, cx: ReducerContext<'_>) -> ToolOutput {
        let start: String = output.value.chars().take(25).collect();
        ok(format!("{start}… (turn {}, {})", cx.turn, cx.args["article"]))
    }
}

struct Chat(Log);

impl ChannelAdapter for Chat {
    fn audience(&self) -> Audience {
        Audience::User
    }

    fn deliver(&self, event: &Event) {
        if let EventKind::ToolProgress { message, .. } = &event.kind {
            self.0.add(format!("progress {message}"));
        }
    }
}

#[tokio::test]
async fn a_call_passes_own_ports() {
    let order = Tool::builder("order")
        .description("Orders.")
        .input_schema(
            json!({ "type": "object", "properties": { "article": { "type": "string" } } }),
        )
        .capabilities(Capabilities::none().secrets(["KEY"]).network(["a.example.com"]).person())
        .body(Order)
        .unwrap();
    let (log, shown) = (Log::default(), Log::default());
    let engine = Engine::builder()
        .tool(order)
        .policy(Policy::of([Rule::ask("orders").tools(["order"])]))
        .capability_granter(Granter)
        .secrets(Keys)
        .approver(Person(log.clone()))
        .journal(Calls(log.clone()))
        .reducer(Short)
        .build()
        .unwrap();
    let channel = engine.events().channel(Chat(shown.clone()));
    let result = call(&engine, TurnOptions::default(), "order", json!({ "article": "a-17" })).await;
    assert_eq!(result.code, None, "{}: {:?}", result.text, result.cause);
    assert_eq!(&*result.text, "\"a-17\" in M, by line 1, k… (turn 1, \"a-17\")");
    let expected = [
        "approve order",
        r#"intent {"article":"a-17"}"#,
        "clarify Which size?",
        "outcome None true",
    ];
    assert_eq!(log.lines(), expected);
    assert_eq!(shown.lines(), ["progress half"]);
    channel.unsubscribe();
}

#[tokio::test]
async fn an_own_middleware_rewrites_a_call_of_a_runner() {
    /// Names an article.
    #[tool]
    fn name_article(article: String) -> String {
        article
    }
    let log = Log::default();
    let engine =
        Engine::builder().tool(name_article_tool()).middleware(Upper(log.clone())).build().unwrap();
    let executor = super::turns::Once::new("name_article", json!({ "article": "a-17" }));
    let texts = executor.texts();
    TurnRunner::new(engine).run(TurnOptions::default(), executor).await.unwrap();
    assert_eq!(texts.lines(), ["A-17"]);
    assert_eq!(log.lines(), ["iteration 1"]);
}
