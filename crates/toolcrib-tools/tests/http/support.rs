//! A server that answers what a test says, and tools that ask it.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{
    CancellationToken, ErrorCode, Secret, SecretError, Secrets, Tool, ToolContextParts, ToolError,
    ToolOutput,
};
use toolcrib_tools::{
    Declaration,
    http::{HttpToolSpec, Method},
};

/// A request as it came over the wire.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The first line and the headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// The server's response to a request; then it closes.
enum Manner {
    Answers(Vec<u8>),
    /// Waits until the other side has gone.
    IsSilent,
    /// Answers and reads on, but for the second request of all, which it closes upon.
    BreaksOnce(Vec<u8>),
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Fires once a request has come in.
    pub(crate) got_one: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        Self::start(Manner::Answers(bytes.into())).await
    }

    pub(crate) async fn silent() -> Self {
        Self::start(Manner::IsSilent).await
    }

    pub(crate) async fn breaking_once(bytes: impl Into<Vec<u8>>) -> Self {
        Self::start(Manner::BreaksOnce(bytes.into())).await
    }

    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let got_one = CancellationToken::new();
        let (seen, got) = (Arc::clone(&asked), got_one.clone());
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                while let Some(request) = read(&mut stream).await {
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request);
                        seen.len()
                    };
                    got.cancel();
                    // The client may have disconnected, which does not matter.
                    match &manner {
                        Manner::Answers(bytes) => drop(stream.write_all(bytes).await),
                        Manner::IsSilent => drop(stream.read(&mut [0]).await),
                        Manner::BreaksOnce(_) if number == 2 => {}
                        Manner::BreaksOnce(bytes) => {
                            drop(stream.write_all(bytes).await);
                            continue;
                        }
                    }
                    break;
                }
            }
        });
        Self { address, asked, got_one, task }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut body = bytes[head_end + 4..].to_vec();
    let asked = Asked { head, body: String::new() };
    let length: usize = asked.header("content-length").map_or(0, |text| text.parse().unwrap());
    while body.len() < length {
        stream.read_buf(&mut body).await.ok()?;
    }
    Some(Asked { body: String::from_utf8(body).unwrap(), ..asked })
}

/// 200 with a body of that type.
pub(crate) fn ok(content_type: &str, body: &str) -> String {
    answer("200 OK", &format!("Content-Type: {content_type}\r\n"), body)
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A client that dials this machine.
pub(crate) fn client() -> HttpClient {
    HttpClient::builder().allow_addresses(["127.0.0.1/32".parse().unwrap()]).build()
}

/// A client that dials this machine, and follows redirects to a server there.
pub(crate) fn client_of(server: &Server) -> HttpClient {
    let here = "127.0.0.1/32".parse().unwrap();
    HttpClient::builder().allow_addresses([here, server.address.into()]).build()
}

/// A tool with these properties, of which those whose names end in `?` are optional.
pub(crate) fn spec(method: Method, url: &str, properties: &[&str]) -> HttpToolSpec {
    let named = properties.iter().map(|name| (name.trim_end_matches('?').to_owned(), json!({})));
    let required: Vec<_> = properties.iter().filter(|name| !name.ends_with('?')).collect();
    let declaration = Declaration {
        input_schema: json!({
            "type": "object",
            "properties": named.collect::<serde_json::Map<_, _>>(),
            "required": required,
        }),
        ..Declaration::new("tool", "Does something.")
    };
    HttpToolSpec::new(declaration, method, url)
}

pub(crate) fn get(url: &str, properties: &[&str]) -> HttpToolSpec {
    spec(Method::GET, url, properties)
}

pub(crate) fn post(url: &str, properties: &[&str], body: Value) -> HttpToolSpec {
    HttpToolSpec { body: Some(body), ..spec(Method::POST, url, properties) }
}

/// Builds the tool and calls it, outside any engine and without secrets.
pub(crate) async fn call(spec: HttpToolSpec, args: Value) -> Result<ToolOutput, ToolError> {
    let tool = spec.build(&client()).unwrap();
    tool.call(args, ToolContextParts::detached().into()).await
}

pub(crate) async fn fails(spec: HttpToolSpec, args: Value) -> (ErrorCode, String) {
    let error = call(spec, args).await.unwrap_err();
    (error.code, error.message)
}

/// Knows `KEY` and a `BROKEN` one, and notes what it is asked for.
#[derive(Default)]
pub(crate) struct Vault {
    pub(crate) asked: Mutex<Vec<String>>,
}

pub(crate) const SECRET: &str = "s3cret-s3cret";

impl Secrets for Vault {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Secret, SecretError>> + Send + 'a>> {
        self.asked.lock().unwrap().push(name.to_owned());
        Box::pin(async move {
            match name {
                "KEY" => Ok(Secret::new(SECRET)),
                "BROKEN" => Ok(Secret::new("s3cret\r\nX-Evil: 1")),
                _ => Err(SecretError::Unknown { name: name.into() }),
            }
        })
    }
}

/// Calls with these secrets.
pub(crate) async fn call_with(
    tool: &Tool,
    args: Value,
    vault: &Arc<Vault>,
) -> Result<ToolOutput, ToolError> {
    let secrets: Arc<dyn Secrets> = Arc::clone(vault) as _;
    let parts = ToolContextParts { secrets: Some(secrets), ..ToolContextParts::detached() };
    tool.call(args, parts.into()).await
}
