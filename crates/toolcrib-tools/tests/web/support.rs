//! A server that answers each path as a test says, and tools that request it.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{ErrorCode, ToolContextParts};
use toolcrib_tools::{
    Declaration,
    web::{FetchLimits, WebTool},
};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Answers the paths; all others with 404.
    pub(crate) async fn of(answers: &[(&str, Vec<u8>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers: HashMap<String, Vec<u8>> =
            answers.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
        let (answers, asked) = (Arc::new(answers), Arc::<Mutex<Vec<_>>>::default());
        let seen = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&answers), Arc::clone(&seen)));
            }
        });
        Self { address, asked, task }
    }

    /// One page of this type at `/`.
    pub(crate) async fn page(content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::of(&[("/", ok(content_type, body))]).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of the requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    answers: Arc<HashMap<String, Vec<u8>>>,
    asked: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap().to_owned();
    asked.lock().unwrap().push(head);
    match answers.get(&path) {
        // A body without an end.
        Some(answer) if answer.ends_with(ENDLESS) => {
            let start = &answer[..answer.len() - ENDLESS.len()];
            let mut sent = stream.write_all(start).await;
            while sent.is_ok() {
                sent = stream.write_all(&[b'x'; 4096]).await;
            }
        }
        Some(answer) => drop(stream.write_all(answer).await),
        None => drop(stream.write_all(&answer("404 Not Found", "", b"")).await),
    }
}

/// The end of an answer that goes on for ever.
pub(crate) const ENDLESS: &[u8] = b"<endless>";

pub(crate) fn ok(content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &format!("Content-Type: {content_type}\r\n"), body.as_ref())
}

pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A client that dials this machine.
pub(crate) fn client() -> HttpClient {
    HttpClient::builder().allow_addresses(["127.0.0.1/32".parse().unwrap()]).build()
}

pub(crate) async fn call_of(
    tool: WebTool,
    client: &HttpClient,
    args: Value,
) -> Result<String, (ErrorCode, String)> {
    let declaration = tool.declaration(&Declaration::new("", ""), None);
    let tool = tool.build(declaration, client).unwrap();
    let result = tool.call(args, ToolContextParts::detached().into()).await;
    result.map(|output| output.value).map_err(|error| (error.code, error.message))
}

pub(crate) async fn fetch_with(
    client: &HttpClient,
    args: Value,
) -> Result<String, (ErrorCode, String)> {
    call_of(WebTool::Fetch(FetchLimits::default()), client, args).await
}

pub(crate) async fn fetch(url: &str) -> Result<String, (ErrorCode, String)> {
    fetch_with(&client(), json!({ "url": url })).await
}

/// The result for a page of this type, with the server's address replaced.
pub(crate) async fn read(content_type: &str, body: impl AsRef<[u8]>) -> String {
    let server = Server::page(content_type, body).await;
    let read = fetch(&server.url("/")).await.unwrap();
    read.replace(&server.address.to_string(), "SERVER")
}

pub(crate) async fn read_html(body: &str) -> String {
    let read = read("text/html; charset=utf-8", body).await;
    read.split_once("\n\n").map_or(String::new(), |(_, text)| text.to_owned())
}
