//! A server that records its requests, and sends configured responses.

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use serde_json::{Map, Value, json};

use super::reply::Reply;

/// The headers that matter to a vendor.
const HEADERS: [&str; 6] = [
    "anthropic-beta",
    "anthropic-version",
    "authorization",
    "content-type",
    "x-api-key",
    "x-goog-api-key",
];

/// Answers each request with the next reply, and the connection ends with it.
pub(crate) struct Server {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    requests: Vec<Value>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (script, ended): (Arc<Mutex<Script>>, Arc<AtomicBool>) = Default::default();
        let (at, end) = (Arc::clone(&script), Arc::clone(&ended));
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if end.load(Ordering::Acquire) {
                    return;
                }
                let Some(request) = record(&stream) else { continue };
                let mut script = at.lock().unwrap();
                script.requests.push(request);
                // A surplus request gets no response.
                let reply = script.replies.pop_front();
                drop(script);
                // A client that has read enough disconnects.
                let _ = reply.map(|reply| send(&stream, &reply));
            }
        });
        Self { address, script, ended, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the next responses, and clears the recorded requests.
    pub(crate) fn play(&self, replies: &[Reply]) {
        *self.script.lock().unwrap() =
            Script { replies: replies.iter().cloned().collect(), requests: Vec::new() };
    }

    /// The requests recorded since.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.script.lock().unwrap().requests.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // It waits for a connection, and looks then.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the server failed");
        }
    }
}

/// Reads a request; nothing when the connection is closed before one came.
fn record(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Map::new();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        if name == "content-length" {
            length = value.parse().unwrap();
        }
        if HEADERS.contains(&name.as_str()) {
            headers.insert(name, value.into());
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    Some(json!({ "method": method, "path": path, "headers": headers, "body": body }))
}

fn send(mut stream: &TcpStream, reply: &Reply) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    for chunk in reply.chunks() {
        stream.write_all(&chunk)?;
    }
    stream.flush()
}
