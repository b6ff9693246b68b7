//! The host's information in a tool's context, teams, attachments, and the exclusion of writers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_core::{
    Attachment, Audience, Capabilities, ChannelAdapter, ErrorCode, Event, EventKind, MemoryScope,
    Progress, Tool, ToolContext, ToolError, ToolOutput,
};
use toolcrib_engine::{Engine, Limits, Personality, TurnOptions};

use crate::support::{batch, builder, call, engine, in_time, once, tool, why};

async fn with(engine: &Engine, options: TurnOptions, name: &str, args: Value) -> String {
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![call(name, args)]).await.remove(0).value.to_string()
}

#[tokio::test]
async fn a_body_reads_the_hosts_information_and_the_scopes_of_its_memory() {
    let look = builder("look")
        .handler(|_: Value, cx: ToolContext| async move {
            let info = cx.info();
            let scope = |scope| cx.memory_scope_id(scope).map_err(|error| error.code);
            ToolOutput::text(format!(
                "{:?} {:?} {:?} {} {} {:?} {:?} {:?} {:?}",
                info.platform,
                info.session_key,
                info.agent_id,
                info.turn,
                info.messages,
                scope(MemoryScope::Global),
                scope(MemoryScope::Personality),
                scope(MemoryScope::Principal),
                scope(MemoryScope::Team),
            ))
        })
        .unwrap();
    let engine =
        engine().tool(look).personality(Personality::new("support").team("care")).build().unwrap();
    let plain = with(&engine, TurnOptions::default(), "look", json!({})).await;
    let expected = "None None None 1 0 Ok(\"global\") Ok(\"personality:default\") \
        Ok(\"principal:[null,null]\") Err(NotAvailable)";
    assert_eq!(plain, expected);
    let mut options = TurnOptions::default()
        .platform("slack")
        .session_key("slack:#help")
        .agent_id("desk-1")
        .tenant("acme")
        .principal("ann")
        .personality("support");
    options.info.turn = 3;
    options.info.messages = 7;
    let told = with(&engine, options, "look", json!({})).await;
    let expected = "Some(\"slack\") Some(\"slack:#help\") Some(\"desk-1\") 3 7 Ok(\"global\") \
        Ok(\"personality:support\") Ok(\"principal:[\\\"acme\\\",\\\"ann\\\"]\") Ok(\"team:care\")";
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_tool_of_a_team_is_offered_to_its_members_alone() {
    let board = builder("board").capabilities(Capabilities::none().team());
    let board = board
        .handler(|_: Value, cx: ToolContext| async move { cx.team().unwrap_or("none").to_owned() })
        .unwrap();
    let engine = engine()
        .tool(board)
        .tool(tool("other"))
        .personality(Personality::new("support").team("care"))
        .personality(Personality::new("sales"))
        .build()
        .unwrap();
    let member = TurnOptions::default().personality("support");
    assert_eq!(with(&engine, member, "board", json!({})).await, "care");
    let mut turn = engine.turn(TurnOptions::default().personality("sales")).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let why = why(iteration.withheld(), "board");
    assert!(why.starts_with("personality `sales` is a member of no team"), "{why}");
    let refused = iteration.execute(vec![call("board", json!({}))]).await.remove(0);
    assert_eq!(refused.code, Some(ErrorCode::NotAvailable));
}

#[tokio::test]
async fn case_33_attachments_are_opened_by_id_by_tools_that_declare_them() {
    let opened = |declares: bool| {
        let capabilities = match declares {
            true => Capabilities::none().attachments(),
            false => Capabilities::none(),
        };
        builder(if declares { "open" } else { "closed" })
            .input_schema(json!({"type": "object", "properties": {"id": {"type": "string"}}}))
            .capabilities(capabilities)
            .handler(|args: Value, cx: ToolContext| async move {
                let id = args["id"].as_str().unwrap_or_default();
                let attachment = cx.attachments()?.open(id)?;
                Ok::<_, ToolError>(attachment.text().unwrap_or("binary").to_owned())
            })
            .unwrap()
    };
    let engine = engine().tool(opened(true)).tool(opened(false)).build().unwrap();
    let notes = Attachment::new("/home/ann/notes.txt", *b"buy milk").unwrap();
    let id = notes.id().to_owned();
    let mut options = TurnOptions::default();
    options.attachments.add(notes).unwrap();
    let args = json!({ "id": id });
    assert_eq!(with(&engine, options.clone(), "open", args.clone()).await, "buy milk");
    // Undeclared, another turn, a path.
    assert!(
        with(&engine, options.clone(), "closed", args.clone()).await.contains("not configured")
    );
    assert!(with(&engine, TurnOptions::default(), "open", args).await.contains("no attachments"));
    let path = json!({ "id": "/home/ann/notes.txt" });
    assert!(with(&engine, options, "open", path).await.contains(&*id));
}

#[tokio::test]
async fn calls_that_change_the_same_resource_run_one_after_the_other() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let writer = |name: &str| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        builder(name)
            .input_schema(json!({"type": "object", "properties": {"file": {"type": "string"}}}))
            .resource(|args| args["file"].as_str().map(str::to_owned))
            .handler(move |_: Value, _: ToolContext| {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    "written"
                }
            })
            .unwrap()
    };
    let engine = engine().tool(writer("write")).tool(writer("patch")).build().unwrap();
    let calls = |files: [&str; 4]| {
        let name = |at: usize| if at.is_multiple_of(2) { "write" } else { "patch" };
        let call = |(at, file): (usize, &str)| {
            toolcrib_core::ToolCall::new(format!("c{at}"), name(at), json!({ "file": file }))
        };
        files.into_iter().enumerate().map(call).collect::<Vec<_>>()
    };
    // Two tools, and two turns.
    let (one, two) = (batch(&engine, calls(["a"; 4])), batch(&engine, calls(["a"; 4])));
    let (one, two) = futures_util::future::join(one, two).await;
    assert!(one.iter().chain(&two).all(toolcrib_core::ToolResult::is_ok), "{one:?}");
    assert_eq!(most.swap(0, Ordering::SeqCst), 1);
    batch(&engine, calls(["a", "b", "c", "d"])).await;
    assert!(most.load(Ordering::SeqCst) > 1, "different resources exclude nothing");
}

#[tokio::test]
async fn a_key_that_panics_fails_its_call() {
    let broken = builder("broken").resource(|_| panic!("hunter2"));
    let broken = broken.handler(|_: Value, _: ToolContext| async { "ran" }).unwrap();
    let result = once(&engine().tool(broken).build().unwrap(), "broken", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
    assert!(!result.text.contains("hunter2"));
    assert!(result.cause.unwrap().contains("hunter2"));
}

fn sleeper(name: &str, steps: u32) -> Tool {
    builder(name)
        .read_only()
        .handler(move |_: Value, cx: ToolContext| async move {
            for step in 0..steps {
                cx.progress(Progress::internal(format!("step {step}")));
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            tokio::time::sleep(Duration::from_millis(if steps == 0 { 30_000 } else { 1 })).await;
            "done"
        })
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_without_progress_is_stopped_and_one_with_progress_goes_on() {
    let limits = Limits { idle_timeout: Some(Duration::from_millis(300)), ..Limits::default() };
    let engine = engine()
        .tool(sleeper("silent", 0))
        .tool(sleeper("busy", 20))
        .limits(limits)
        .build()
        .unwrap();
    let results =
        in_time(batch(&engine, vec![call("silent", json!({})), call("busy", json!({}))])).await;
    assert_eq!(results[0].code, Some(ErrorCode::Timeout));
    assert_eq!(&*results[0].value, "`silent` made no progress for 300ms and was stopped");
    assert_eq!(&*results[1].value, "done");
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_server_extends_its_calls_up_to_a_limit() {
    // Each step takes 30 ms; the last one of `stuck` takes 30 s.
    let remote = |name: &str, steps| {
        let remote = builder(name).timeout(Duration::from_millis(100)).mcp_server("far");
        remote
            .handler(move |_: Value, cx: ToolContext| async move {
                for step in 0..steps {
                    cx.progress(Progress::internal(format!("step {step}")));
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
                if steps == 2 {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                }
                "done"
            })
            .unwrap()
    };
    let engine = engine()
        .tool(remote("busy", 20))
        .tool(remote("endless", 1_000))
        .tool(remote("stuck", 2))
        .build()
        .unwrap();
    let calls = ["busy", "endless", "stuck"].map(|name| call(name, json!({})));
    let results = in_time(batch(&engine, calls.into())).await;
    assert_eq!(&*results[0].value, "done");
    let stopped = |result: &str, why: &str| assert!(result.contains(why), "{result}");
    stopped(&results[1].value, "`endless` did not finish within 1s and was stopped");
    stopped(&results[2].value, "`stuck` made no progress for 100ms and was stopped");
}

#[tokio::test]
async fn the_time_of_a_batch_stops_its_calls_and_begins_no_further_one() {
    let limits = Limits { batch_timeout: Some(Duration::from_millis(200)), ..Limits::default() };
    let alone = builder("alone").read_only().sequential();
    let alone = alone.handler(|_: Value, _: ToolContext| async { "ran" }).unwrap();
    let engine = engine().tool(sleeper("silent", 0)).tool(alone).limits(limits).build().unwrap();
    let calls = vec![call("silent", json!({})), call("alone", json!({}))];
    let results = in_time(batch(&engine, calls)).await;
    assert_eq!(results[0].code, Some(ErrorCode::Timeout), "{results:?}");
    assert_eq!(results[1].code, Some(ErrorCode::Timeout));
    assert_eq!(&*results[1].value, "`alone` was not run: the time of its batch is over");
    // The next batch has the whole time again.
    assert_eq!(&*once(&engine, "alone", json!({})).await.value, "ran");
}

struct Shown(Audience, Arc<Mutex<Vec<String>>>);

impl ChannelAdapter for Shown {
    fn audience(&self) -> Audience {
        self.0
    }

    fn deliver(&self, event: &Event) {
        if let EventKind::ToolProgress { message, .. } = &event.kind {
            self.1.lock().unwrap().push(message.clone());
        }
    }
}

#[tokio::test]
async fn case_63_a_display_receives_progress_for_its_audience_alone() {
    let says = builder("says")
        .handler(|_: Value, cx: ToolContext| async move {
            cx.progress(Progress::internal("internal"));
            cx.progress(Progress { audience: Audience::Dashboard, ..Progress::internal("panel") });
            cx.progress(Progress::user("user"));
            "done"
        })
        .unwrap();
    let engine = engine().tool(says).build().unwrap();
    let seen = [Audience::User, Audience::Dashboard, Audience::Internal].map(|audience| {
        let seen = Arc::default();
        engine.events().channel(Shown(audience, Arc::clone(&seen)));
        seen
    });
    once(&engine, "says", json!({})).await;
    let seen = seen.map(|seen| seen.lock().unwrap().join(" "));
    assert_eq!(seen, ["user", "panel user", "internal panel user"]);
}
