//! Measures the overhead of our client in an exchange: URL checks, limits in time and size, and a
//! task that cancels the exchange while its response is not read.

use hyper::body::Bytes;
use tokio::{
    runtime::Runtime,
    task::yield_now,
    time::{Instant, sleep_until},
};
use toolcrib_benches::{Cell, Outcome, Table, cpu_time, median, micros, vendor::Server};
use toolcrib_capabilities::http::{DEFAULT_TIMEOUT, HttpClient, HttpRequest, Method};
use toolcrib_core::CancellationToken;

use crate::{COMMAND, plain::Plain, runtime};

/// Number of series per way, alternating.
const SERIES: usize = 40;
/// Number of exchanges per series.
const EXCHANGES: usize = 200;

/// Size of the response.
const ANSWER_BYTES: usize = 1000;

pub(crate) fn table() -> Outcome<Table> {
    let runtime = runtime()?;
    let server = runtime.block_on(Server::start(vec![answer()]))?;
    let mut plain = runtime.block_on(Plain::connect(&server))?;
    let here = format!("{}/32", server.address().ip()).parse()?;
    let client = HttpClient::builder().allow_addresses([here]).build();
    let url = format!("http://{}/v1/records/1042", server.address());

    let mut found: [Vec<f64>; 4] = Default::default();
    for _ in 0..SERIES {
        let series = [
            time(&runtime, async || whole(plain.exchange(body()).await?))?,
            time(&runtime, async || send(&client, &url).await)?,
            time(&runtime, async || stream(&client, &url).await)?,
            time(&runtime, watch)?,
        ];
        found.iter_mut().zip(series).for_each(|(found, series)| found.push(series));
    }
    let connections = server.seen().connections;
    if connections != 2 {
        return Err(format!("{connections} connections, and not two").into());
    }
    let [alone, send, stream, task] = found.map(median);
    let row = |name: &str, figure: f64, over: Option<f64>| {
        let ratio = over.map_or("–".into(), |over| Cell::from(figure / over));
        vec![name.into(), figure.into(), ratio]
    };
    Ok(Table {
        title: "An exchange through our client",
        command: COMMAND,
        columns: vec!["CPU time per exchange", "median, µs", "/ hyper alone"],
        rows: vec![
            row("hyper alone", alone, None),
            row("`HttpClient::send`", send, Some(alone)),
            row("`HttpClient::stream`, read to its end", stream, Some(alone)),
            row("a task that waits for time and cancellation, and is stopped", task, None),
        ],
    })
}

fn answer() -> Vec<u8> {
    let body = "x".repeat(ANSWER_BYTES);
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {ANSWER_BYTES}\r\n\r\n{body}")
        .into_bytes()
}

fn body() -> Bytes {
    Bytes::from_static(br#"{"number": 1042}"#)
}

fn request(url: &str) -> HttpRequest {
    let mut request = HttpRequest::new(Method::POST, url);
    request.body = Some(body());
    request
}

async fn send(client: &HttpClient, url: &str) -> Outcome {
    whole(client.send(request(url), &CancellationToken::new()).await?.body.len())
}

async fn stream(client: &HttpClient, url: &str) -> Outcome {
    let mut stream = client.stream(request(url), &CancellationToken::new()).await?;
    let mut bytes = 0;
    while let Some(piece) = stream.chunk().await? {
        bytes += piece.len();
    }
    whole(bytes)
}

/// Only the client's task beside each response.
async fn watch() -> Outcome {
    let cancel = CancellationToken::new();
    let ends = Instant::now() + DEFAULT_TIMEOUT;
    let task = tokio::spawn(async move {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = sleep_until(ends) => {}
        }
    });
    // Lets it begin to wait.
    yield_now().await;
    task.abort();
    match task.await {
        Err(error) if error.is_cancelled() => Ok(()),
        _ => Err("it was not stopped".into()),
    }
}

fn whole(bytes: usize) -> Outcome {
    if bytes == ANSWER_BYTES { Ok(()) } else { Err(format!("an answer of {bytes} bytes").into()) }
}

/// CPU time per repetition in a series, in µs.
fn time(runtime: &Runtime, mut work: impl AsyncFnMut() -> Outcome) -> Outcome<f64> {
    runtime.block_on(async {
        let began = cpu_time();
        for _ in 0..EXCHANGES {
            work().await?;
        }
        Ok(micros(cpu_time() - began) / EXCHANGES as f64)
    })
}
