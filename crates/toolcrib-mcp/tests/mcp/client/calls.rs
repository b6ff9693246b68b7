//! Results of calls.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolcrib_core::{
    Audience, CancellationToken, ContentBlock, ErrorCode, EventKind, Events, Progress,
    ProgressCount, Tool, ToolCall, ToolContext, ToolContextParts, ToolError, ToolOutput,
};
use toolcrib_engine::{OnFailure, TurnOptions};
use toolcrib_mcp::{McpClient, McpClientBuilder, MockServer, mock_mcp_client};

use super::support::{builder, built, call, engine_of, mock, once, tool_of};

/// A tool that signals its start and ends only with its call.
fn endless(running: &Arc<Notify>) -> Tool {
    let running = Arc::clone(running);
    builder("endless")
        .handler(move |_: Value, _: ToolContext| {
            running.notify_one();
            std::future::pending::<()>()
        })
        .unwrap()
}

fn answering(output: impl Fn() -> Result<ToolOutput, ToolError> + Send + Sync + 'static) -> Tool {
    builder("t")
        .handler(move |_: Value, _: ToolContext| {
            let output = output();
            async move { output }
        })
        .unwrap()
}

async fn answer(
    output: impl Fn() -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
) -> Result<ToolOutput, (ErrorCode, String)> {
    let (client, _server) = built(mock_mcp_client([answering(output)]));
    call(&tool_of(&client, "t").await).await
}

#[tokio::test(start_paused = true)]
async fn a_result_keeps_its_text_blocks_and_data() {
    let whole = || {
        ToolOutput::text("seen")
            .structured(json!({ "n": 1 }))
            .block(ContentBlock::image("image/png", *b"\x89PNG"))
            .block(ContentBlock::audio("audio/wav", *b"RIFF"))
            .block(ContentBlock::text("file:///a.csv", "a,b").media_type("text/csv"))
            .block(ContentBlock::binary("file:///b", *b"\0\x01").media_type("application/x"))
            .block(ContentBlock::link("https://a.example/", "a"))
    };
    assert_eq!(answer(move || Ok(whole())).await.unwrap(), whole());
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_says_of_its_failure_reaches_the_model() {
    let failed = answer(|| Err(ToolError::failed("the disk is full"))).await.unwrap_err();
    assert_eq!(failed, (ErrorCode::ExecutionFailed, "the disk is full".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_protocol_has_the_code_that_it_means() {
    let (client, server) = built(mock(&["t"]));
    let tool = tool_of(&client, "t").await;
    for (code, message, expected) in [
        (-32_602, "`city` is missing", ErrorCode::InputInvalid),
        (-32_601, "no such method", ErrorCode::ExecutionFailed),
        (-32_602, "Unknown tool: t", ErrorCode::ExecutionFailed),
        (-32_603, "out of memory", ErrorCode::ExecutionFailed),
        (-1, "something", ErrorCode::ExecutionFailed),
    ] {
        server.fail_next_call(code, message);
        assert_eq!(call(&tool).await.unwrap_err(), (expected, message.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_the_server_no_longer_knows_makes_the_list_be_asked_for_again() {
    let (client, server) = built(mock(&["t"]));
    let tool = tool_of(&client, "t").await;
    server.fail_next_call(-32_602, "Unknown tool: t");
    call(&tool).await.unwrap_err();
    client.tools().await.unwrap();
    assert_eq!(server.lists(), 2);
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_the_user_only_if_the_server_is_trusted() {
    let talking = builder("t")
        .handler(|_: Value, cx: ToolContext| async move {
            cx.progress(Progress::user("half").percent(50));
            "done"
        })
        .unwrap();
    let (stranger, known) = (mock_mcp_client([talking.clone()]), mock_mcp_client([talking]));
    for (mock, audience) in
        [(stranger, Audience::Dashboard), (known.client(McpClientBuilder::trusted), Audience::User)]
    {
        let (client, _server) = built(mock);
        let tool = tool_of(&client, "t").await;
        let (sender, mut progress) = tokio::sync::mpsc::channel(8);
        let mut parts = ToolContextParts::detached();
        parts.progress = Some(Arc::new(move |said| drop(sender.try_send(said))));
        tool.call(json!({}), parts.into()).await.unwrap();
        let said = progress.recv().await.unwrap();
        let count = Some(ProgressCount { done: 50.0, total: Some(100.0) });
        let percent = Some(50);
        assert_eq!(said, Progress { percent, count, audience, ..Progress::internal("half") });
    }
}

/// Runs a call until it is carried out, and cancels it.
async fn cancelled(client: &McpClient, running: &Notify) -> (ErrorCode, String) {
    let tool = tool_of(client, "endless").await;
    let mut parts = ToolContextParts::detached();
    let token = CancellationToken::new();
    parts.cancellation = token.clone();
    let call = tokio::spawn(tool.call(json!({}), parts.into()));
    running.notified().await;
    token.cancel();
    let error = call.await.unwrap().unwrap_err();
    (error.code, error.message)
}

async fn server_hears_of(server: &MockServer, cancelled: u64) {
    while server.cancelled() < cancelled {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancellation_reaches_the_server() {
    for legacy in [false, true] {
        let running = Arc::new(Notify::new());
        let builder = mock_mcp_client([endless(&running)]);
        let (client, server) = built(if legacy { builder.legacy() } else { builder });
        let (code, message) = cancelled(&client, &running).await;
        assert_eq!(code, ErrorCode::OutcomeUnknown, "{message}");
        server_hears_of(&server, 1).await;

        // A body that is dropped tells it too.
        let tool = tool_of(&client, "endless").await;
        let call = tokio::spawn(tool.call(json!({}), ToolContextParts::detached().into()));
        running.notified().await;
        call.abort();
        server_hears_of(&server, 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_reaches_the_server_and_the_outcome_is_unknown() {
    let running = Arc::new(Notify::new());
    let limited = mock_mcp_client([endless(&running)])
        .client(|client| client.call_timeout(Duration::from_secs(2)));
    let (client, server) = built(limited);
    let result = once(&engine_of(&client, OnFailure::Fail), "mcp__mock__endless", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::OutcomeUnknown), "{}", result.value);
    server_hears_of(&server, 1).await;

    // Of one that changes nothing it is plain that it had no effect.
    let reading = {
        let running = Arc::clone(&running);
        builder("endless").read_only().handler(move |_: Value, _: ToolContext| {
            running.notify_one();
            std::future::pending::<()>()
        })
    };
    let limited = mock_mcp_client([reading.unwrap()])
        .client(|client| client.trusted().call_timeout(Duration::from_secs(2)));
    let (client, _server) = built(limited);
    let result = once(&engine_of(&client, OnFailure::Fail), "mcp__mock__endless", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::Timeout), "{}", result.value);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_server_dies_with_is_unknown_and_never_repeated() {
    let (client, server) = built(mock(&["t"]));
    let tool = tool_of(&client, "t").await;
    server.crash_during_call();
    let (code, message) = call(&tool).await.unwrap_err();
    assert_eq!(code, ErrorCode::OutcomeUnknown);
    assert_eq!(
        message,
        "the connection to MCP server `mock` ended before an answer came; the call may have had \
         its effect, so check before trying again"
    );
    assert_eq!(server.calls(), 1);
    // The next one waits for the server to be back.
    assert_eq!(call(&tool).await.unwrap().value, "t: {}");
    assert_eq!((server.calls(), server.connections()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_lost_call_of_a_trusted_read_only_tool_has_failed() {
    let reading = builder("t").read_only().handler(|_: Value, _: ToolContext| async {}).unwrap();
    for (trusted, expected) in
        [(true, ErrorCode::ExecutionFailed), (false, ErrorCode::OutcomeUnknown)]
    {
        let builder = mock_mcp_client([reading.clone()]);
        let (client, server) =
            built(if trusted { builder.client(McpClientBuilder::trusted) } else { builder });
        let tool = tool_of(&client, "t").await;
        server.crash_during_call();
        assert_eq!(call(&tool).await.unwrap_err().0, expected);
        assert_eq!(server.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_batch_run_at_the_same_time() {
    let (client, server) = built(mock(&["t"]));
    let engine = engine_of(&client, OnFailure::Fail);
    client.tools().await.unwrap();
    server.delay(Duration::from_secs(5));
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let began = tokio::time::Instant::now();
    let calls = (0..20).map(|n| ToolCall::new(format!("{n}"), "mcp__mock__t", json!({ "n": n })));
    let results = iteration.execute(calls.collect()).await;
    // The paused clock only advances for timers.
    assert_eq!(began.elapsed().as_secs(), 5);
    let values: Vec<_> = results.iter().map(|result| result.value.to_string()).collect();
    let expected: Vec<_> = (0..20).map(|n| format!("t: {{\"n\":{n}}}")).collect();
    assert_eq!(values, expected);
}

#[tokio::test(start_paused = true)]
async fn events_name_the_tool_and_where_it_is_from() {
    let (client, _server) = built(mock(&["t"]));
    let events = Events::default();
    let (sender, received) = std::sync::mpsc::channel();
    let _heard = events
        .on("*", move |event| {
            if let EventKind::DiscoveryCompleted { provider, tool_count, .. } = &event.kind {
                sender.send((provider.to_string(), *tool_count)).unwrap();
            }
        })
        .unwrap();
    let engine = engine_of(&client, OnFailure::Fail);
    engine.turn(TurnOptions::default().events(events)).unwrap().iteration().await.unwrap();
    let heard: Vec<_> = received.try_iter().collect();
    assert!(heard.contains(&("mcp:mock".to_owned(), 1)), "{heard:?}");
}
