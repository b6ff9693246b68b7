//! A minimal server: it answers every request with the next of its prepared responses.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// Large enough for every request of these benches, which is read in place.
const BUFFER: usize = 1024 * 1024;

/// The end of a request's head.
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// A server on a free local port and the current runtime, until it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

struct Shared {
    answers: Vec<Vec<u8>>,
    seen: Mutex<Seen>,
}

/// The requests received so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The number of connections.
    pub connections: usize,
    /// The length of each request's body, in bytes.
    pub bodies: Vec<usize>,
    /// The last of them.
    pub last: Vec<u8>,
}

impl Server {
    /// Begins to serve these responses, each complete HTTP, cyclically in order.
    ///
    /// # Errors
    /// If no local port is free.
    pub async fn start(answers: Vec<Vec<u8>>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { answers, seen: Mutex::default() });
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.seen().connections += 1;
                // The client notices the missing data.
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Ok(Self { address, shared, accepting: accepting.abort_handle() })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests received so far.
    pub fn seen(&self) -> Seen {
        self.shared.seen().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a body, and returns its response.
    fn answer(&self, body: &[u8]) -> &[u8] {
        let mut seen = self.seen();
        let position = seen.bodies.len() % self.answers.len().max(1);
        seen.bodies.push(body.len());
        seen.last.clear();
        seen.last.extend_from_slice(body);
        self.answers.get(position).map(Vec::as_slice).unwrap_or_default()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::with_capacity(BUFFER);
    loop {
        let (body, end) = loop {
            if let Some((body, length)) = head(&request)
                && request.len() >= body + length
            {
                break (body, body + length);
            }
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        };
        let answer = shared.answer(request.get(body..end).unwrap_or_default());
        stream.write_all(answer).await?;
        request.clear();
    }
}

/// The start and length of the body.
fn head(request: &[u8]) -> Option<(usize, usize)> {
    let end = request.windows(END_OF_HEAD.len()).position(|bytes| bytes == END_OF_HEAD)?;
    let head = str::from_utf8(request.get(..end)?).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Some((end + END_OF_HEAD.len(), length.unwrap_or(0)))
}
