//! Measures building a request: the loop's conversation after 24 calls, and a client that may
//! connect to no host, so that nothing is sent.

use std::sync::Arc;

use allocation_counter::AllocationInfo;
use futures_util::StreamExt as _;
use tokio::runtime::Runtime;
use toolcrib_benches::{
    Cell, Outcome, Table, call, cpu_time, median, micros, render, tools,
    vendor::{Server, Wire, answers},
};
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{Menu, Message, Model, ModelErrorClass, ModelRequest, ToolChoice};
use toolcrib_models::VendorModel;

use crate::{COMMAND, runtime};

/// Number of models that are created to measure the first request.
const MODELS: usize = 15;
/// Number of series of requests, all of which but the first reuse the tool block.
const SERIES: usize = 15;
/// Number of requests per series.
const REQUESTS: usize = 50;

pub(crate) fn table() -> Outcome<Table> {
    let mut rows = Vec::new();
    for count in [10, 1000] {
        let request = conversation(count)?;
        rows.push(anew(count, &request)?);
        for wire in Wire::ALL {
            rows.push(adapter(wire, count, &request)?);
        }
    }
    Ok(Table {
        title: "A request of 50 messages, built and not sent",
        command: COMMAND,
        columns: vec![
            "CPU time per request",
            "body, KiB",
            "the first of a menu, µs",
            "the next, µs",
            "its allocations",
            "KiB allocated",
        ],
        rows,
    })
}

/// 50 messages: the user's request, 24 calls with their results, and one more user message.
fn conversation(tool_count: usize) -> Outcome<ModelRequest> {
    let mut messages = vec![Message::user("Read the ledgers.")];
    for number in 0..24 {
        messages.push(Message::assistant("", [call(number)]));
        messages.push(Message::Tool {
            call_id: format!("call_{number}").into(),
            name: "look_up_0007".into(),
            text: "record 1042: open".into(),
            blocks: Arc::default(),
            is_error: false,
            untrusted: false,
        });
    }
    messages.push(Message::user("And now the others."));
    Ok(ModelRequest {
        system: "You keep the ledgers.".into(),
        messages: Arc::new(messages),
        menu: Arc::new(Menu::new(tools(tool_count)?)?),
        tool_choice: ToolChoice::Auto,
        sent_parts: None,
    })
}

/// The same without a cache between requests.
fn anew(tool_count: usize, request: &ModelRequest) -> Outcome<Vec<Cell>> {
    let mut written = 0;
    let mut write = || {
        let mut body = Vec::new();
        render(request, &mut body)?;
        written = body.len();
        Ok(())
    };
    let next = series(&mut write)?;
    let allocations = counting(&mut write)?;
    let name = format!("all rewritten, {tool_count} tools");
    Ok(row(name, written, None, next, &allocations))
}

fn adapter(wire: Wire, tool_count: usize, request: &ModelRequest) -> Outcome<Vec<Cell>> {
    let runtime = runtime()?;
    let server = runtime.block_on(Server::start(answers(wire)))?;
    let sent = Arc::new(wire.model(&server).build()?);
    runtime.block_on(async { sent.respond(request.clone()).next().await }).ok_or("no answer")??;
    let bytes = server.seen().last.len();

    let mut firsts = Vec::new();
    let mut built = fresh(wire, &server)?;
    for _ in 0..MODELS {
        built = fresh(wire, &server)?;
        let began = cpu_time();
        build(&runtime, &built, request)?;
        firsts.push(micros(cpu_time() - began));
    }
    let mut again = || build(&runtime, &built, request);
    let next = series(&mut again)?;
    let allocations = counting(&mut again)?;
    let name = format!("{}, {tool_count} tools", wire.name());
    Ok(row(name, bytes, Some(median(firsts)), next, &allocations))
}

fn row(
    name: String,
    bytes: usize,
    first: Option<f64>,
    next: f64,
    allocations: &AllocationInfo,
) -> Vec<Cell> {
    vec![
        Cell::Text(name),
        (bytes as f64 / 1024.0).into(),
        first.map_or("–".into(), Cell::from),
        next.into(),
        allocations.count_total.into(),
        (allocations.bytes_total as f64 / 1024.0).into(),
    ]
}

/// A model that has seen no menu, and may not connect.
fn fresh(wire: Wire, server: &Server) -> Outcome<Arc<VendorModel>> {
    let nowhere = HttpClient::builder().allowed_hosts(Some(Vec::new())).build();
    Ok(Arc::new(wire.model(server).client(nowhere).build()?))
}

/// All work for a request before its client would connect.
fn build(runtime: &Runtime, model: &Arc<VendorModel>, request: &ModelRequest) -> Outcome {
    let refused = async { Arc::clone(model).respond(request.clone()).next().await };
    match runtime.block_on(refused) {
        Some(Err(error)) if error.class == ModelErrorClass::BadRequest => Ok(()),
        other => Err(format!("it was not refused by its client: {other:?}").into()),
    }
}

/// CPU time per repetition, in µs.
fn series(work: &mut impl FnMut() -> Outcome) -> Outcome<f64> {
    let mut each = Vec::new();
    for _ in 0..SERIES {
        let began = cpu_time();
        for _ in 0..REQUESTS {
            work()?;
        }
        each.push(micros(cpu_time() - began) / REQUESTS as f64);
    }
    Ok(median(each))
}

fn counting(work: &mut impl FnMut() -> Outcome) -> Outcome<AllocationInfo> {
    let mut outcome = Ok(());
    let allocations = allocation_counter::measure(|| outcome = work());
    outcome.map(|()| allocations)
}
