//! A server with configured responses, and the parts of conversations.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use toolcrib_core::{
    Menu, Message, Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse,
    Tool, ToolChoice,
};
use toolcrib_models::VendorModel;

/// A server's response: a body in chunks.
#[derive(Clone)]
pub(crate) struct Reply {
    status: u16,
    media_type: &'static str,
    headers: String,
    pieces: Vec<Vec<u8>>,
}

impl Reply {
    /// A response with that status and that JSON.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, "application/json", body)
    }

    /// A stream of events.
    pub(crate) fn events(body: impl AsRef<[u8]>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", body)
    }

    /// A JSON value per line.
    pub(crate) fn lines(body: impl AsRef<[u8]>) -> Self {
        Self::new(200, "application/x-ndjson", body)
    }

    fn new(status: u16, media_type: &'static str, body: impl AsRef<[u8]>) -> Self {
        let pieces = vec![body.as_ref().to_vec()];
        Self { status, media_type, headers: String::new(), pieces }
    }

    /// The same in two pieces.
    pub(crate) fn cut_at(mut self, position: usize) -> Self {
        let whole = self.pieces.concat();
        let (first, second) = whole.split_at(position);
        self.pieces = vec![first.to_vec(), second.to_vec()];
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { status, media_type, headers, pieces } = self;
        let mut bytes = format!(
            "HTTP/1.1 {status} -\r\ncontent-type: {media_type}\r\n{headers}\
             transfer-encoding: chunked\r\n\r\n"
        )
        .into_bytes();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    }
}

/// A received request.
#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    head: String,
    pub(crate) body: String,
}

impl ReceivedRequest {
    /// The method and the path.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Answers each request with the next reply.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    serving: JoinHandle<()>,
}

type Replies = Arc<Mutex<dyn Iterator<Item = Reply> + Send>>;

impl Server {
    pub(crate) async fn start<R>(replies: R) -> Self
    where
        R: IntoIterator<Item = Reply>,
        R::IntoIter: Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let replies: Replies = Arc::new(Mutex::new(replies.into_iter()));
        let log = Arc::clone(&seen);
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, Arc::clone(&replies), Arc::clone(&log)));
            }
        });
        Self { url, seen, serving }
    }

    /// The received requests, in order.
    pub(crate) fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// The last received request.
    pub(crate) fn last(&self) -> ReceivedRequest {
        self.seen.lock().unwrap().last().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut connection: TcpStream, replies: Replies, log: Arc<Mutex<Vec<ReceivedRequest>>>) {
    connection.set_nodelay(true).unwrap();
    while let Some(seen) = next_request(&mut connection).await {
        log.lock().unwrap().push(seen);
        let reply = replies.lock().unwrap().next().expect("a reply for each request");
        if connection.write_all(&reply.bytes()).await.is_err() {
            return;
        }
    }
}

/// The next request, until the client disconnects.
async fn next_request(connection: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let (head, body) = bytes.split_at(end + 4);
            let seen = ReceivedRequest {
                head: String::from_utf8(head.to_vec()).unwrap(),
                body: String::from_utf8_lossy(body).into_owned(),
            };
            let length = seen.header("content-length").map_or(0, |n| n.parse::<usize>().unwrap());
            if body.len() >= length {
                return Some(seen);
            }
        }
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// The whole result of reading a response.
#[derive(Debug)]
pub(crate) struct ReceivedAnswer {
    /// The pieces of text, joined.
    pub(crate) text: String,
    /// The pieces of reasoning, joined.
    pub(crate) reasoning: String,
    pub(crate) outcome: Result<ModelResponse, ModelError>,
}

pub(crate) async fn ask(model: &Arc<VendorModel>, request: ModelRequest) -> ReceivedAnswer {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let mut answer = Arc::clone(model).respond(request);
    loop {
        let outcome = match answer.next().await.expect("an answer ends with a whole or an error") {
            Ok(ModelChunk::Text(piece)) => {
                text.push_str(&piece);
                continue;
            }
            Ok(ModelChunk::Reasoning(piece)) => {
                reasoning.push_str(&piece);
                continue;
            }
            Ok(ModelChunk::Done(response)) => Ok(response),
            Ok(other) => panic!("an unknown piece: {other:?}"),
            Err(error) => Err(error),
        };
        assert!(answer.next().await.is_none(), "nothing comes after the end");
        return ReceivedAnswer { text, reasoning, outcome };
    }
}

/// A tool that is never called.
pub(crate) fn tool(name: &str, description: &str, input_schema: Value) -> Tool {
    Tool::builder(name)
        .description(description)
        .input_schema(input_schema)
        .handler(|_: Value, _| async { "never called" })
        .unwrap()
}

pub(crate) fn request(messages: Vec<Message>, tools: Vec<Tool>) -> ModelRequest {
    ModelRequest {
        system: "You help. Be brief.".into(),
        messages: Arc::new(messages),
        menu: Arc::new(Menu::new(tools).unwrap()),
        tool_choice: ToolChoice::Auto,
        sent_parts: None,
    }
}

/// The note in place of an answer.
pub(crate) const NO_ANSWER: &str = "[note of the tool layer: there is no answer here]";

/// Checks the error of a stream that was cut: a lost connection until a part of the answer has
/// arrived.
#[track_caller]
pub(crate) fn check_cut(error: &ModelError, has_begun: &mut bool) {
    match error.class {
        ModelErrorClass::Network if !*has_begun => {}
        ModelErrorClass::Incomplete => *has_begun = true,
        _ => panic!("{error:?}"),
    }
}

/// A body with a line break before each of these, to be readable.
pub(crate) fn in_lines(body: &str, beginnings: &[&str]) -> String {
    beginnings
        .iter()
        .fold(body.to_owned(), |body, beginning| body.replace(beginning, &format!("\n{beginning}")))
}
