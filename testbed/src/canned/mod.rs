//! A server that sends prepared bytes, for behavior that no correct server has.

mod exchange;
mod reply;

use std::{io, net::Ipv4Addr, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

pub use self::reply::{Gate, Reply};
use self::{exchange::converse, reply::Ending};
use crate::recorder::Recorder;

/// A server on the loopback interface that answers each request with the next of a list of prepared
/// replies, independent of the request, and records the requests.
///
/// It is for faults: its replies may break off, stall, or be invalid HTTP. A request beyond the
/// list gets a 500 with that reason. Dropping it stops it and closes its connections.
///
/// Its neighbor [`ModelServer`](crate::ModelServer) implements a protocol and lets a model decide.
///
/// ```
/// use std::time::Duration;
///
/// use toolcrib_testbed::{CannedServer, Reply};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let server = CannedServer::start([
///     Reply::new(429).header("retry-after", "2").body("{}"),
///     Reply::sse().piece("data: {\"a\"").pause(Duration::from_millis(10)).cut(),
/// ])
/// .await?;
/// # assert!(server.url().starts_with("http://127.0.0.1:"));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct CannedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// The connections of a server.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    accepted: usize,
    open: usize,
    left: usize,
}

struct Shared {
    replies: Mutex<Box<dyn Iterator<Item = Reply> + Send>>,
    recorder: Recorder,
    counts: watch::Sender<Counts>,
}

toolcrib_core::__internal::debug_fields!(Shared, shared, counts = *shared.counts.borrow(), ..);

impl CannedServer {
    /// Starts a server with these replies, on a tokio runtime. To repeat one reply forever, use
    /// `std::iter::repeat(reply)`.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start<I>(replies: I) -> io::Result<Self>
    where
        I: IntoIterator<Item = Reply>,
        I::IntoIter: Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            replies: Mutex::new(Box::new(replies.into_iter())),
            recorder: Recorder::new(),
            counts: watch::Sender::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// Its address: `http://127.0.0.1:41234`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The received requests.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.counts.borrow().accepted
    }

    /// The number of open connections.
    pub fn open(&self) -> usize {
        self.shared.counts.borrow().open
    }

    /// The number of replies that were not completed because the client disconnected.
    pub fn left(&self) -> usize {
        self.shared.counts.borrow().left
    }

    /// Waits until clients disconnected during this many replies. It may wait forever: put a
    /// timeout around it.
    pub async fn wait_until_left(&self, replies: usize) {
        let mut counts = self.shared.counts.subscribe();
        // The sender lives in `self`.
        let _ = counts.wait_for(|counts| counts.left >= replies).await;
    }
}

impl Drop for CannedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts connections, which end with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    shared.count(|counts| {
        counts.accepted += 1;
        counts.open += 1;
    });
    let _closing = Closing(&shared);
    // Without it small pieces are delayed.
    let _ = stream.set_nodelay(true);
    if converse(&mut stream, &shared).await == Some(Ending::Reset) {
        // Unsent data is discarded, and the client gets a reset.
        let _ = stream.set_zero_linger();
    }
}

/// Counts a connection as closed on drop.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.count(|counts| counts.open -= 1);
    }
}

impl Shared {
    fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_modify(change);
    }

    fn next_reply(&self) -> Reply {
        let next = self.replies.lock().next();
        next.unwrap_or_else(|| {
            Reply::new(500).body(format!("no reply is left for request {}", self.recorder.len()))
        })
    }
}
