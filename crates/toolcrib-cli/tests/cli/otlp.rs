//! Traces in OTLP: a collector receives the spans of calls, with their parents and without their contents.

use std::{
    fs,
    iter::repeat,
    process::{Command, Stdio},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value as Attribute},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolcrib_testbed::{CannedServer, Reply};

use crate::{
    gateway::Http,
    support::{Project, python_server, wait_for},
};

const TOKEN: &str = "a-token-of-a-test-0001";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A server that writes the metadata of its calls to a file, and fails if its arguments say so.
const SERVER: &str = r#"
def answer(method, params):
    if method == "tools/list":
        return {"tools": [{"name": "say", "description": "Says a text.",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]}
    if method == "tools/call":
        with open("meta.jsonl", "a") as file:
            print(json.dumps(params.get("_meta")), file=file)
        text = params["arguments"]["text"]
        return {"content": [{"type": "text", "text": "said " + text}], "isError": "fail" in text}
"#;

/// A collector that answers each request alike.
struct Collector {
    server: CannedServer,
    _runtime: Runtime,
}

impl Collector {
    fn start(reply: Reply) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(CannedServer::start(repeat(reply))).unwrap();
        Self { server, _runtime: runtime }
    }

    fn of(&self, command: &mut Command) {
        exporting_to(command, &self.server.url());
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=hush-collector");
        command.env("OTEL_SERVICE_NAME", "desk");
    }

    /// The received spans.
    fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for request in self.server.recorder().requests() {
            assert_eq!(request.path_and_query, "/v1/traces");
            assert_eq!(request.header("x-collector-key"), Some("hush-collector"));
            assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
            let export = ExportTraceServiceRequest::decode(request.body).unwrap();
            for group in export.resource_spans {
                let resource = group.resource.unwrap().attributes;
                assert_eq!(attribute(&resource, "service.name").as_deref(), Some("desk"));
                spans.extend(group.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        }
        spans
    }

    fn contains(&self, text: &str) -> bool {
        let is_in = |body: &[u8]| body.windows(text.len()).any(|part| part == text.as_bytes());
        self.server.recorder().requests().iter().any(|request| is_in(&request.body))
    }
}

fn exporting_to(command: &mut Command, url: &str) {
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url);
}

fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|one| one.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Attribute::StringValue(text) => Some(text.clone()),
        Attribute::IntValue(number) => Some(number.to_string()),
        _ => None,
    }
}

fn of(span: &Span, key: &str) -> Option<String> {
    attribute(&span.attributes, key)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is(span: &Span, kind: SpanKind) -> bool {
    span.kind == i32::from(kind)
}

fn failed(span: &Span) -> bool {
    span.status.as_ref().is_some_and(|status| status.code == i32::from(StatusCode::Error))
}

fn gateway() -> Project {
    let file = "policy_default = 'allow'\n[secrets]\nA = { env = 'TEST_A' }\n\
                [mcp.s]\ncommand = 'python3'\nargs = ['server.py']\n\
                [[serve.token]]\nsecret = 'secret:A'\nprincipal = 'ana'\n";
    Project::of(&[("toolcrib.toml", file), ("server.py", &python_server(SERVER))])
}

#[test]
fn a_collector_receives_each_call_of_a_gateway_within_the_trace_of_its_client() {
    let collector = Collector::start(Reply::new(200));
    let project = gateway();
    let log = project.path().join("access.jsonl");
    let mut command = project.command(&["serve", "--access-log", log.to_str().unwrap()]);
    command.env("TEST_A", TOKEN);
    collector.of(&mut command);
    let http = Http::start(&mut command, &project.path().join("errors.txt"));

    let session = http.begin(TOKEN);
    let say = |text: &str| json!({ "name": "mcp__s__say", "arguments": { "text": text } });
    let mut traced = say("confidential");
    traced["_meta"] = json!({
        "traceparent": format!("00-{TRACE}-{PARENT}-01"),
        "tracestate": "vendor=1",
        "example.test/mine": 1,
    });
    assert_eq!(http.call_in(TOKEN, &session, 11, &traced).0, "200");
    let mut malformed = say("again");
    malformed["_meta"] = json!({ "traceparent": "00-1", "tracestate": "vendor=2" });
    assert_eq!(http.call_in(TOKEN, &session, 12, &malformed).0, "200");
    assert_eq!(http.post(Some(TOKEN), "tools/call", &say("please fail"), None).0, "200");
    let unknown = json!({ "name": "confidential_name", "arguments": {} });
    http.post(Some(TOKEN), "tools/call", &unknown, None);
    let (_, metrics) = http.get("/metrics");
    // The spans of the last calls are sent at SIGTERM.
    assert_eq!(http.end(), Some(0));

    let spans = collector.spans();
    let requests: Vec<_> = spans.iter().filter(|span| is(span, SpanKind::Server)).collect();
    let entries = fs::read_to_string(&log).unwrap();
    let entries: Vec<Value> =
        entries.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let logged = entries.iter().filter(|entry| entry["method"] == "tools/call").count();
    let counted = metrics.lines().filter(|line| line.starts_with("toolcrib_calls_total{"));
    let counted: usize =
        counted.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum();
    assert_eq!((requests.len(), logged, counted), (4, 4, 4), "{metrics}");
    // Failures agree too.
    let refused = entries.iter().filter(|entry| !entry["code"].is_null()).count();
    assert_eq!(requests.iter().filter(|span| failed(span)).count(), refused);

    let traced: Vec<_> = spans.iter().filter(|span| hex(&span.trace_id) == TRACE).collect();
    let request = *traced.iter().find(|span| is(span, SpanKind::Server)).unwrap();
    assert_eq!(hex(&request.parent_span_id), PARENT);
    assert_eq!(request.name, "tools/call");
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("mcp.session.id", &*session),
        ("mcp.protocol.version", "2025-06-18"),
        ("jsonrpc.request.id", "11"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "mcp__s__say"),
        ("toolcrib.principal", "ana"),
    ] {
        assert_eq!(of(request, key).as_deref(), Some(value), "{key}");
    }
    let call = *traced.iter().find(|span| is(span, SpanKind::Client)).unwrap();
    assert_eq!(call.parent_span_id, request.span_id);
    assert_eq!(call.name, "execute_tool mcp__s__say");
    // Discoveries of a request are within it.
    let discoveries: Vec<_> = traced.iter().filter(|span| span.name == "discovery").collect();
    assert!(!discoveries.is_empty());
    assert!(discoveries.into_iter().all(|span| span.parent_span_id == request.span_id));

    // The server continues the trace of the call, and has the rest of the client's metadata.
    let meta = fs::read_to_string(project.path().join("meta.jsonl")).unwrap();
    let meta: Vec<Value> = meta.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let traceparent = format!("00-{TRACE}-{}-01", hex(&call.span_id));
    assert_eq!(meta[0]["traceparent"], json!(traceparent));
    assert_eq!(meta[0]["tracestate"], json!("vendor=1"));
    assert_eq!(meta[0]["example.test/mine"], json!(1));
    // A malformed context begins a new trace, without the state of another one.
    assert_eq!(meta[1].get("tracestate"), None);
    let own = meta[1]["traceparent"].as_str().unwrap().split('-').nth(2).unwrap().to_owned();
    assert!(spans.iter().any(|span| hex(&span.span_id) == own), "{own}");

    let failing = spans.iter().find(|span| is(span, SpanKind::Client) && failed(span)).unwrap();
    assert_eq!(of(failing, "error.type").as_deref(), Some("execution_failed"));
    for text in ["confidential", "please fail", TOKEN] {
        assert!(!collector.contains(text), "no span contains {text:?}");
    }
}

#[test]
fn a_run_sends_its_spans_before_it_ends() {
    let collector = Collector::start(Reply::new(200));
    let desk = Project::desk();
    let mut command = desk.command(&["run", "Refund the double charge of order 1042", "--quiet"]);
    collector.of(&mut command);
    assert!(command.output().unwrap().status.success());
    let spans = collector.spans();
    let turn = spans.iter().find(|span| span.parent_span_id.is_empty()).unwrap();
    assert_eq!(turn.name, "invoke_agent default");
    assert_eq!(of(turn, "gen_ai.operation.name").as_deref(), Some("invoke_agent"));
    for number in ["gen_ai.usage.input_tokens", "toolcrib.iterations"] {
        let attribute = turn.attributes.iter().find(|one| one.key == number).unwrap();
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        assert!(matches!(value, Some(Attribute::IntValue(1..))), "{number}: {value:?}");
    }
    assert!(spans.iter().all(|span| span.trace_id == turn.trace_id));
    let within = |name: &str, parent: &Span| {
        let mut named = spans.iter().filter(|span| span.name.starts_with(name));
        let child = named.find(|span| span.parent_span_id == parent.span_id);
        child.unwrap_or_else(|| panic!("no {name} within {}: {spans:#?}", parent.name))
    };
    let iteration = within("iteration", turn);
    let model = within("chat script:", iteration);
    assert!(is(model, SpanKind::Client));
    let called = spans.iter().filter(|span| span.name.starts_with("execute_tool "));
    assert!(called.clone().count() > 0);
    for call in called {
        assert!(
            spans
                .iter()
                .any(|span| { span.name == "iteration" && span.span_id == call.parent_span_id })
        );
        assert!(of(call, "gen_ai.tool.call.id").is_some());
    }
    assert!(!collector.contains("1042"), "no span contains the message or arguments");
}

/// A model that gives a task to another personality.
const TASK: &str = r#"
[[rule]]
user = "^Go$"
step = 1
calls = [{ tool = "task", args = { prompt = "Read it.", agent = "reader" } }]
[[rule]]
text = "Done."
"#;

#[test]
fn the_turn_of_a_child_agent_is_within_that_of_its_parent() {
    let collector = Collector::start(Reply::new(200));
    let file = "policy_default = 'allow'\n[agent]\nmodel = 'script:script.toml'\n\
                [[personality]]\nname = 'reader'\nsystem = 'You read.'\n\
                [[tool]]\nkind = 'task'\nagents = ['reader']\n";
    let project = Project::of(&[("toolcrib.toml", file), ("script.toml", TASK)]);
    let mut command = project.command(&["run", "Go"]);
    collector.of(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let spans = collector.spans();
    let turn = |agent: &str| {
        let name = format!("invoke_agent {agent}");
        spans.iter().find(|span| span.name == name).unwrap()
    };
    assert_eq!(turn("reader").parent_span_id, turn("default").span_id);
}

#[test]
fn a_collector_that_cannot_be_reached_is_reported_once_and_costs_calls_nothing() {
    let project = gateway();
    // One refuses connections, the other never answers.
    let silent = Collector::start(Reply::new(200).hold());
    for url in ["http://127.0.0.1:9", &*silent.server.url()] {
        let errors = project.path().join("errors.txt");
        let mut command = project.command(&["serve"]);
        command.env("TEST_A", TOKEN).env("OTEL_BSP_SCHEDULE_DELAY", "50");
        exporting_to(&mut command, url);
        let http = Http::start(&mut command, &errors);
        let params = json!({ "name": "mcp__s__say", "arguments": { "text": "hello" } });
        let call = || {
            let (status, answer) = http.post(Some(TOKEN), "tools/call", &params, None);
            assert_eq!(status, "200", "{answer}");
        };
        call();
        let said = || fs::read_to_string(&errors).unwrap();
        let reports = || said().matches("traces cannot be exported").count();
        if url.ends_with(":9") {
            wait_for(|| reports() == 1);
        } else {
            wait_for(|| !silent.server.recorder().is_empty());
        }
        let given_up = silent.server.left();
        for _ in 0..20 {
            call();
        }
        // An export ends after ten seconds.
        assert!(silent.server.left() - given_up < 20, "each call waited for an export");
        assert_eq!(http.end(), Some(0));
        assert!(reports() <= 1, "{}", said());
    }
}

#[test]
fn an_endpoint_that_is_no_url_is_an_error_and_the_environment_can_disable_it() {
    let desk = Project::desk();
    let run = |more: &[(&str, &str)]| {
        let mut command = desk.command(&["run", "--fresh", "Refund order 1042"]);
        exporting_to(&mut command, "not a url");
        command.envs(more.iter().copied()).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{said}");
    for disabled in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
        let (code, said) = run(&[disabled]);
        assert_eq!(code, Some(0), "{said}");
    }
}
