//! Streams of server-sent events. A session's client may come back to a stream from which it was
//! disconnected, with the id of the last event that it received.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::pending,
    pin::pin,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::DropGuard;
use toolcrib_core::CancellationToken;

/// The number of events that a stream keeps for a client that reads slowly, or comes back. Of more,
/// the oldest are dropped: they are progress and notices of changes, and the last is the response. A
/// request is kept until it has a response: without one, a call would wait forever.
const KEPT: usize = 64;
/// The same in bytes, except that the newest is always kept. Also the limit of requests.
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// The interval of comments in a silent stream, by which both sides detect a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The number of the event that begins a stream of a session, without a message.
const FIRST: u64 = 0;

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The id of an event: its stream in the session, and its number there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) stream: u64,
    pub(crate) number: u64,
}

impl FromStr for EventId {
    type Err = std::num::ParseIntError;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        let (stream, number) = id.split_once('/').unwrap_or((id, ""));
        Ok(Self { stream: stream.parse()?, number: number.parse()? })
    }
}

/// Messages to one client. Sending never waits; clones send to the same stream.
#[derive(Clone)]
pub(crate) struct EventStream(Arc<Shared>);

struct Shared {
    /// The number of response bodies that clients read.
    readers: AtomicUsize,
    /// The stream's number in the session; `None` without one: no client can come back.
    number: Option<u64>,
    /// Fires when a stream without a last message ends.
    ended: Option<CancellationToken>,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// The last events.
    kept: VecDeque<Event>,
    kept_bytes: usize,
    /// The number of the newest event.
    newest: u64,
    /// The number of the newest event that a reader received.
    received: u64,
    /// Whether the newest event is the last.
    is_complete: bool,
    /// The number of readers that replaced all before them.
    reader: u64,
}

/// A kept event.
struct Event {
    number: u64,
    /// Without the framing.
    message: Bytes,
    /// Whether it is a request without a response.
    is_awaited: bool,
}

impl EventStream {
    /// A stream without events. It ends after its last message, or when the token fires.
    pub(crate) fn new(number: Option<u64>, ended: Option<CancellationToken>) -> Self {
        let state = State {
            kept: VecDeque::new(),
            kept_bytes: 0,
            newest: FIRST,
            received: FIRST,
            is_complete: false,
            reader: 0,
        };
        let state = Mutex::new(state);
        let readers = AtomicUsize::new(0);
        Self(Arc::new(Shared { readers, number, ended, state, changed: Notify::new() }))
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: Bytes) {
        self.change(|state| state.push(message, false));
    }

    /// Sends a request, which is kept until it is [over](Self::is_over). Returns its number; `None`
    /// if too many bytes of requests are kept.
    pub(crate) fn send_request(&self, message: Bytes) -> Option<u64> {
        self.change(|state| {
            let awaited = state.kept.iter().filter(|event| event.is_awaited);
            let bytes: usize = awaited.map(|event| event.message.len()).sum();
            (bytes + message.len() <= KEPT_BYTES).then(|| state.push(message, true))
        })
    }

    /// A request has a response, or needs none any more.
    pub(crate) fn is_over(&self, number: u64) {
        let mut state = self.0.state.lock();
        if let Some(event) = state.kept.iter_mut().find(|event| event.number == number) {
            event.is_awaited = false;
        }
    }

    /// Sends the last message.
    pub(crate) fn send_last(&self, message: Bytes) {
        self.change(|state| {
            state.push(message, false);
            state.is_complete = true;
        });
    }

    /// Whether a client reads it.
    pub(crate) fn is_read(&self) -> bool {
        self.0.readers.load(Ordering::Acquire) > 0
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.0.state.lock());
        self.0.changed.notify_waiters();
        changed
    }

    /// Whether no message was sent yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.state.lock().newest == FIRST
    }

    /// Done when a message was sent.
    pub(crate) async fn has_message(&self) {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if !self.is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// A response body with the events that no reader received. The client is considered gone when
    /// the guard is dropped with the body.
    pub(crate) fn body(&self, guard: Option<DropGuard>) -> Body {
        self.read(None, None, guard, None)
    }

    /// A response body with the events that no reader received, until a moment.
    pub(crate) fn body_until(&self, expires: Option<Instant>) -> Body {
        self.read(None, None, None, expires)
    }

    /// A response body with the events after this one and until a moment, for a client that comes
    /// back. The earlier reader of a request's stream gets nothing more: its client does not read it any more, which
    /// the server may not have noticed.
    pub(crate) fn body_after(&self, number: u64, replaces: bool, expires: Option<Instant>) -> Body {
        let reader = replaces.then(|| {
            let mut state = self.0.state.lock();
            state.reader += 1;
            state.reader
        });
        self.0.changed.notify_waiters();
        self.read(Some(number), reader, None, expires)
    }

    fn read(
        &self,
        replay: Option<u64>,
        reader: Option<u64>,
        guard: Option<DropGuard>,
        expires: Option<Instant>,
    ) -> Body {
        let begins = self.0.number.is_some() && replay.is_none();
        let stream = self.clone();
        let reader = reader.unwrap_or(0);
        stream.0.readers.fetch_add(1, Ordering::AcqRel);
        let reader = Reader { stream, begins, replay, reader, expires, _guard: guard };
        let frames = stream::unfold(reader, async |mut reader| {
            let bytes = reader.next().await?;
            Some((Ok(Frame::data(bytes)), reader))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

impl State {
    /// Returns the number of the event.
    fn push(&mut self, message: Bytes, is_awaited: bool) -> u64 {
        self.newest += 1;
        self.kept_bytes += message.len();
        self.kept.push_back(Event { number: self.newest, message, is_awaited });
        while self.kept.len() > KEPT || self.kept_bytes > KEPT_BYTES {
            let may_go = |event: &Event| !event.is_awaited && event.number != self.newest;
            let Some(oldest) = self.kept.iter().position(may_go) else { break };
            self.kept_bytes -= self.kept.remove(oldest).map_or(0, |event| event.message.len());
        }
        self.newest
    }

    /// The kept event with this number or the next one.
    fn at(&self, number: u64) -> Option<(u64, Bytes)> {
        let index = self.kept.partition_point(|event| event.number < number);
        self.kept.get(index).map(|event| (event.number, event.message.clone()))
    }
}

/// One response body.
struct Reader {
    stream: EventStream,
    /// Whether the event without a message is next.
    begins: bool,
    /// The number of the last event that the client received, while it receives events again.
    replay: Option<u64>,
    /// The number of replacements before this reader.
    reader: u64,
    /// The moment from which its client is not authorized any more.
    expires: Option<Instant>,
    _guard: Option<DropGuard>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stream.0.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The next action of a reader.
enum ReadStep {
    Event(Bytes),
    Wait,
    End,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        let shared = Arc::clone(&self.stream.0);
        let ended = async {
            match &shared.ended {
                Some(ended) => ended.cancelled().await,
                None => pending().await,
            }
        };
        let mut ended = pin!(ended);
        let mut expired = pin!(expired(self.expires));
        if self.expires.is_some_and(|expires| expires <= Instant::now()) {
            return None;
        }
        if std::mem::take(&mut self.begins) {
            return Some(framed(shared.number, FIRST, b""));
        }
        loop {
            let mut changed = pin!(shared.changed.notified());
            changed.as_mut().enable();
            match self.poll() {
                ReadStep::Event(event) => return Some(event),
                ReadStep::End => return None,
                ReadStep::Wait => {}
            }
            tokio::select! {
                () = changed => {}
                () = &mut ended => return None,
                () = &mut expired => return None,
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    fn poll(&mut self) -> ReadStep {
        let shared = &self.stream.0;
        let mut state = shared.state.lock();
        if self.reader != state.reader {
            return ReadStep::End;
        }
        let event = |(number, message): (u64, Bytes)| {
            ReadStep::Event(framed(shared.number, number, &message))
        };
        if let Some(last) = self.replay
            && last < state.received
            && let Some(next) = state.at(last + 1)
        {
            self.replay = Some(next.0);
            state.received = state.received.max(next.0);
            return event(next);
        }
        self.replay = None;
        if state.received < state.newest
            && let Some(next) = state.at(state.received + 1)
        {
            state.received = next.0;
            return event(next);
        }
        if state.is_complete { ReadStep::End } else { ReadStep::Wait }
    }
}

/// An event on the wire. Messages are JSON on one line.
fn framed(stream: Option<u64>, number: u64, message: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(message.len() + 64);
    if let Some(stream) = stream {
        event.extend_from_slice(format!("id: {stream}/{number}\n").as_bytes());
        if number == FIRST {
            // The delay before a client comes back, in milliseconds.
            event.extend_from_slice(b"retry: 3000\n");
        }
    }
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(message);
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// Done at that moment; never without one.
pub(crate) async fn expired(expires: Option<Instant>) {
    match expires {
        Some(expires) => sleep_until(expires).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> EventStream {
        EventStream::new(Some(1), None)
    }

    fn sent(stream: &EventStream, numbers: std::ops::RangeInclusive<u64>) {
        for number in numbers {
            stream.send(number.to_string().into());
        }
    }

    /// The next events of a body, which are there.
    async fn next(body: &mut Body, count: usize) -> String {
        let mut read = String::new();
        for _ in 0..count {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            read.push_str(str::from_utf8(&frame).unwrap());
        }
        read
    }

    #[tokio::test]
    async fn large_messages_of_a_slow_reader_are_kept_up_to_a_number_of_bytes() {
        let stream = stream();
        let mut body = stream.body(None);
        for letter in ["a", "b", "c"] {
            stream.send(letter.repeat(KEPT_BYTES / 2).into());
        }
        stream.send_last("d".repeat(2 * KEPT_BYTES).into());
        let read = next(&mut body, 2).await;
        assert!(!["a\n", "b\n", "c\n"].iter().any(|end| read.contains(end)), "{}", read.len());
        assert!(read.ends_with("dd\n\n"));
    }

    #[tokio::test]
    async fn a_client_that_comes_back_receives_each_event_after_its_last_one() {
        let stream = stream();
        let mut first = stream.body(None);
        sent(&stream, 1..=2);
        assert_eq!(
            next(&mut first, 3).await,
            "id: 1/0\nretry: 3000\ndata: \n\nid: 1/1\ndata: 1\n\nid: 1/2\ndata: 2\n\n"
        );
        let mut again = stream.body_after(1, true, None);
        stream.send_last("3".into());
        assert_eq!(next(&mut again, 2).await, "id: 1/2\ndata: 2\n\nid: 1/3\ndata: 3\n\n");
        assert!(again.frame().await.is_none());
        // The connection that the client left receives nothing, though it is still open.
        assert!(first.frame().await.is_none());
    }

    #[tokio::test]
    async fn streams_of_a_session_share_its_notifications() {
        let stream = stream();
        sent(&stream, 1..=1);
        let (mut one, mut two) = (stream.body(None), stream.body(None));
        assert!(next(&mut one, 2).await.ends_with("data: 1\n\n"));
        assert!(next(&mut two, 1).await.ends_with("data: \n\n"));
        drop(one);
        sent(&stream, 2..=2);
        assert_eq!(next(&mut two, 1).await, "id: 1/2\ndata: 2\n\n");
        // Coming back to these does not end another stream.
        let mut three = stream.body_after(1, false, None);
        assert_eq!(next(&mut three, 1).await, "id: 1/2\ndata: 2\n\n");
        sent(&stream, 3..=3);
        assert_eq!(next(&mut two, 1).await, "id: 1/3\ndata: 3\n\n");
    }

    #[tokio::test]
    async fn the_oldest_of_too_many_unread_events_are_dropped() {
        let stream = stream();
        sent(&stream, 1..=100);
        stream.send_last("the response".into());
        let mut body = stream.body(None);
        next(&mut body, 1).await;
        assert_eq!(next(&mut body, 1).await, "id: 1/38\ndata: 38\n\n");
        assert!(next(&mut body, KEPT - 1).await.ends_with("data: the response\n\n"));
        assert!(body.frame().await.is_none());
    }

    #[test]
    fn an_id_that_is_none_is_refused() {
        assert_eq!("3/7".parse(), Ok(EventId { stream: 3, number: 7 }));
        for id in ["", "3", "/", "3/", "-1/2", "3/7/1", "99999999999999999999/1"] {
            assert!(id.parse::<EventId>().is_err(), "{id}");
        }
    }
}
