//! A client that knows no more than HTTP.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use toolcrib_models::ScriptedModel;
use toolcrib_testbed::{ModelServer, ModelServerBuilder};

/// A model that greets, or looks up both charges and refunds of an order, and says what came of it.
const SCRIPT: &str = r#"
[[rule]]
when = [{ result = "*", is_error = true }]
text = "{{ error_tool }} failed: {{ error }}"

[[rule]]
called = ["charges", "refunds"]
text = "{{ results.charges.rows | length }} charges, {{ results.refunds.note }}"

[[rule]]
tools_allowed = false
text = "I may not look."

[[rule]]
user = 'order (?P<order>\d+)'
offered = ["charges", "refunds"]
text = "I look: "
calls = [
    { tool = "charges", args = { order = "{{ order | int }}", note = "5 €" } },
    { tool = "refunds", args = { order = "{{ order | int }}" } },
]

[[rule]]
user = 'garbled'
calls = [{ tool = "charges", raw = '{"order": ', even_if_not_offered = true }]

[[rule]]
text = "Grüß dich 😀"
"#;

pub(crate) fn builder() -> ModelServerBuilder {
    let model = ScriptedModel::from_toml("script:test.toml", SCRIPT).unwrap();
    ModelServer::builder(Arc::new(model))
}

pub(crate) async fn server() -> ModelServer {
    builder().start().await.unwrap()
}

/// An answer as it came.
pub(crate) struct Came {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The pieces of the body; one unless it was chunked.
    pub(crate) pieces: Vec<Vec<u8>>,
}

impl Came {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.pieces.concat()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    /// The data of its events, or its lines.
    pub(crate) fn data(&self) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// Sends a request and reads until the server closes.
pub(crate) async fn send(
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Came {
    let came = raw(url, &request(method, path, headers, body)).await;
    let text = came.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(came[..text].to_vec()).unwrap();
    let body = &came[text + 4..];
    let pieces = match head.contains("transfer-encoding: chunked") {
        true => chunks(body),
        false => vec![body.to_vec()],
    };
    Came { status: head[9..12].parse().unwrap(), head, pieces }
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) async fn connect(url: &str) -> TcpStream {
    TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// Whatever comes back until the server closes; what came before a reset counts too.
pub(crate) async fn raw(url: &str, request: &str) -> Vec<u8> {
    let mut stream = connect(url).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut came = Vec::new();
    let reading = stream.read_to_end(&mut came);
    let _ = in_time(reading).await;
    came
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it takes too long")
}

fn chunks(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    loop {
        let line = body.windows(2).position(|window| window == b"\r\n").unwrap();
        let size = std::str::from_utf8(&body[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return pieces;
        }
        pieces.push(body[line + 2..line + 2 + size].to_vec());
        body = &body[line + 2 + size + 2..];
    }
}
