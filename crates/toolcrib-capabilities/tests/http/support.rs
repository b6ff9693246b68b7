//! A server with the responses of a test, and a resolver with the names of a test.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::advance,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::http::{
    HttpClient, HttpClientBuilder, HttpError, HttpRequest, HttpResponse, Resolve,
};

/// A server's action after it has read a request.
pub(crate) enum Reply {
    /// Writes it and waits for the next request.
    Keep(Vec<u8>),
    /// Writes it and closes.
    Close(Vec<u8>),
    /// Writes it, and the second part repeatedly until the reader is gone.
    Endless(Vec<u8>, Vec<u8>),
    /// Writes it and then nothing, until the other side closes.
    Hang(Vec<u8>),
    /// Writes it and what a test sends, until the test closes or the other side does.
    Fed(Vec<u8>, UnboundedReceiver<Vec<u8>>),
}

pub(crate) fn keep(text: impl AsRef<[u8]>) -> Reply {
    Reply::Keep(text.as_ref().to_vec())
}

pub(crate) fn close(text: impl AsRef<[u8]>) -> Reply {
    Reply::Close(text.as_ref().to_vec())
}

/// 200 with a body.
pub(crate) fn ok(body: &str) -> Reply {
    keep(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

pub(crate) fn redirect(status: u16, location: &str) -> Reply {
    keep(format!(
        "HTTP/1.1 {status} See there\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    ))
}

/// 200 with a body of these bytes, and headers that each end with a line end.
pub(crate) fn with_headers(headers: &str, body: &[u8]) -> Reply {
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    Reply::Keep(bytes)
}

/// A request as it came over the wire.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// The first line and the headers, each header in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl ReceivedRequest {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Arc<AtomicUsize>,
    /// Fires once a reply that hangs or has no end is over because the other side has gone.
    pub(crate) left: CancellationToken,
    /// Fires once a request has come in.
    pub(crate) got_one: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(
        answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_at("127.0.0.1", None, answer).await
    }

    pub(crate) async fn secure(
        tls: TlsAcceptor,
        answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_at("127.0.0.1", Some(tls), answer).await
    }

    pub(crate) async fn start_at(
        ip: &str,
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            answer: Box::new(answer),
            asked: Arc::default(),
            left: CancellationToken::new(),
            got_one: CancellationToken::new(),
        });
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, served) = (Arc::clone(&connections), Arc::clone(&state));
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                counted.fetch_add(1, Ordering::SeqCst);
                let (state, tls) = (Arc::clone(&served), tls.clone());
                tokio::spawn(async move {
                    // A client that goes away in the midst of it is what tests are about.
                    let _: io::Result<()> = match tls {
                        None => state.serve(stream).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => state.serve(stream).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self {
            address,
            asked: Arc::clone(&state.asked),
            connections,
            left: state.left.clone(),
            got_one: state.got_one.clone(),
            task,
        }
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.url_of("127.0.0.1", path)
    }

    pub(crate) fn url_of(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.address.port())
    }

    pub(crate) fn secure_url_of(&self, host: &str, path: &str) -> String {
        format!("https://{host}:{}{path}", self.address.port())
    }
}

/// A server that answers one request, with what the test sends while it is read.
pub(crate) struct Feed {
    pub(crate) server: Server,
    pieces: UnboundedSender<Vec<u8>>,
}

impl Feed {
    pub(crate) async fn start(head: &str) -> Self {
        let (pieces, fed) = unbounded_channel();
        let (head, fed) = (head.as_bytes().to_vec(), Mutex::new(Some(fed)));
        let answer = move |_: &ReceivedRequest| {
            let fed = fed.lock().unwrap().take().expect("one request");
            Reply::Fed(head.clone(), fed)
        };
        Self { server: Server::start(answer).await, pieces }
    }

    pub(crate) fn send(&self, piece: impl AsRef<[u8]>) {
        // A server whose client has gone takes no more.
        let _ = self.pieces.send(piece.as_ref().to_vec());
    }

    /// Ends the answer by closing the connection.
    pub(crate) fn close(self) -> Server {
        self.server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct State {
    answer: Box<dyn Fn(&ReceivedRequest) -> Reply + Send + Sync>,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    left: CancellationToken,
    got_one: CancellationToken,
}

impl State {
    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(&self, mut stream: S) -> io::Result<()> {
        while let Some(asked) = read(&mut stream).await? {
            self.asked.lock().unwrap().push(asked.clone());
            self.got_one.cancel();
            match (self.answer)(&asked) {
                Reply::Keep(bytes) => stream.write_all(&bytes).await?,
                Reply::Close(bytes) => {
                    stream.write_all(&bytes).await?;
                    return stream.shutdown().await;
                }
                Reply::Endless(bytes, again) => {
                    stream.write_all(&bytes).await?;
                    while stream.write_all(&again).await.is_ok() {}
                    self.left.cancel();
                    return Ok(());
                }
                Reply::Hang(bytes) => {
                    stream.write_all(&bytes).await?;
                    // Whether by an end or by an error, it has gone.
                    let _ = stream.read(&mut [0]).await;
                    self.left.cancel();
                    return Ok(());
                }
                Reply::Fed(bytes, mut pieces) => {
                    stream.write_all(&bytes).await?;
                    loop {
                        let gone = tokio::select! {
                            piece = pieces.recv() => match piece {
                                Some(piece) => stream.write_all(&piece).await.is_err(),
                                None => return stream.shutdown().await,
                            },
                            _ = stream.read_u8() => true,
                        };
                        if gone {
                            self.left.cancel();
                            return Ok(());
                        }
                    }
                }
            }
            stream.flush().await?;
        }
        Ok(())
    }
}

async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<ReceivedRequest>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut body = bytes[head_end + 4..].to_vec();
    let asked = ReceivedRequest { head, body: String::new() };
    let length: usize = asked.header("content-length").map_or(0, |text| text.parse().unwrap());
    while body.len() < length {
        stream.read_buf(&mut body).await?;
    }
    Ok(Some(ReceivedRequest { body: String::from_utf8(body).unwrap(), ..asked }))
}

/// Knows the names of a test. A name's answers are given one after the other, the last for good.
#[derive(Default, Clone)]
pub(crate) struct Names {
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    pub(crate) fn with(mut self, name: &str, answers: &[&[&str]]) -> Self {
        let answers = answers
            .iter()
            .map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect())
            .collect();
        self.answers.insert(name.to_owned(), answers);
        self
    }

    /// The requests, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolve for Names {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
    ) -> futures_util::future::BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut asked = self.asked.lock().unwrap();
        let before = asked.iter().filter(|name| *name == host).count();
        asked.push(host.to_owned());
        let answer = self.answers.get(host).and_then(|all| all.get(before).or(all.last())).cloned();
        let unknown = || io::Error::new(io::ErrorKind::NotFound, "no such name");
        Box::pin(async move { answer.ok_or_else(unknown) })
    }
}

/// A builder whose clients dial 127.0.0.1, and nothing else that is not public.
pub(crate) fn local() -> HttpClientBuilder {
    HttpClient::builder().allow_addresses(["127.0.0.1/32".parse().unwrap()])
}

/// Sends a request without cancellation.
pub(crate) async fn send(
    client: &HttpClient,
    request: HttpRequest,
) -> Result<HttpResponse, HttpError> {
    client.send(request, &CancellationToken::new()).await
}

pub(crate) async fn get(client: &HttpClient, url: &str) -> Result<HttpResponse, HttpError> {
    send(client, HttpRequest::get(url)).await
}

pub(crate) fn text(response: &HttpResponse) -> &str {
    str::from_utf8(&response.body).unwrap()
}

/// Stops tokio's clock until it is dropped: it then advances only by [`advance`], and not because all
/// tasks wait for a socket.
pub(crate) struct StoppedClock {
    _working: mpsc::Sender<()>,
}

impl StoppedClock {
    pub(crate) fn new() -> Self {
        tokio::time::pause();
        // A paused clock does not advance by itself while the blocking pool works.
        let (_working, end) = mpsc::channel();
        tokio::task::spawn_blocking(move || end.recv());
        Self { _working }
    }

    /// Awaits a future, which ends because time passes.
    pub(crate) async fn until<T>(&self, future: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                advance(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            biased;
            done = future => done,
            () = passing => unreachable!("it never ends"),
        }
    }
}
