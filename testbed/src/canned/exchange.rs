//! Serves one connection: reads requests, sends replies.

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
};
use tokio::{
    io::{self, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    Shared,
    reply::{Ending, Reply, Step},
};
use crate::recorder::Recorded;

/// Answers requests until the connection is to be closed; returns how the last reply ended, or
/// `None` if the client disconnected.
pub(super) async fn converse(stream: &mut TcpStream, shared: &Shared) -> Option<Ending> {
    let (mut from_client, mut to_client) = stream.split();
    let mut unread = Vec::new();
    loop {
        let request = read_request(&mut from_client, &mut unread).await?;
        shared.recorder.keep(request);
        let reply = shared.next_reply();
        let sent = tokio::select! {
            sent = send(&reply, &mut to_client) => sent.is_ok(),
            () = gone(&mut from_client, &mut unread) => false,
        };
        if !sent {
            shared.count(|counts| counts.left += 1);
            return None;
        }
        if !reply.keeps_open() {
            return Some(reply.ending);
        }
    }
}

async fn send(reply: &Reply, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    to.write_all(reply.head().as_bytes()).await?;
    for step in &reply.steps {
        match step {
            Step::Send(piece) => {
                let (before, behind) = reply.around(piece);
                to.write_all(before.as_bytes()).await?;
                to.write_all(piece).await?;
                to.write_all(behind.as_bytes()).await?;
                to.flush().await?;
            }
            Step::Wait(pause) => tokio::time::sleep(*pause).await,
            Step::Gate(gate) => gate.wait().await,
        }
    }
    match reply.ending {
        Ending::Clean => to.write_all(reply.tail().as_bytes()).await,
        Ending::Cut | Ending::Reset => Ok(()),
        Ending::Hold => std::future::pending().await,
    }
}

/// Completes when the client has closed its side.
async fn gone(from: &mut (impl AsyncRead + Unpin), unread: &mut Vec<u8>) {
    while more(from, unread).await.is_some() {}
}

/// Reads more bytes; `None` at the end of the stream.
async fn more(from: &mut (impl AsyncRead + Unpin), unread: &mut Vec<u8>) -> Option<()> {
    match from.read_buf(unread).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

/// Reads a request with its body; `None` if the connection ends early or the request is malformed.
async fn read_request(
    from: &mut (impl AsyncRead + Unpin),
    unread: &mut Vec<u8>,
) -> Option<Recorded> {
    let head = take_until(from, unread, b"\r\n\r\n").await?;
    let head = String::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path_and_query) = (first.next()?, first.next()?);
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_str(value.trim()).ok()?);
    }
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let body = match text(header::CONTENT_LENGTH) {
        Some(length) => take(from, unread, length.parse().ok()?).await?,
        None if text(header::TRANSFER_ENCODING) == Some("chunked") => chunks(from, unread).await?,
        None => Vec::new(),
    };
    Some(Recorded {
        method: Method::from_bytes(method.as_bytes()).ok()?,
        path_and_query: path_and_query.to_owned(),
        headers,
        body: Bytes::from(body),
    })
}

/// A chunked body.
async fn chunks(from: &mut (impl AsyncRead + Unpin), unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = String::from_utf8(take_until(from, unread, b"\r\n").await?).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        body.extend(take(from, unread, size).await?);
        take_until(from, unread, b"\r\n").await?;
        if size == 0 {
            return Some(body);
        }
    }
}

/// Takes `bytes` bytes.
async fn take(
    from: &mut (impl AsyncRead + Unpin),
    unread: &mut Vec<u8>,
    bytes: usize,
) -> Option<Vec<u8>> {
    while unread.len() < bytes {
        more(from, unread).await?;
    }
    Some(unread.drain(..bytes).collect())
}

/// The bytes before a mark; the mark is skipped.
async fn take_until(
    from: &mut (impl AsyncRead + Unpin),
    unread: &mut Vec<u8>,
    mark: &[u8],
) -> Option<Vec<u8>> {
    loop {
        if let Some(at) = unread.windows(mark.len()).position(|window| window == mark) {
            let taken = unread.drain(..at).collect();
            unread.drain(..mark.len());
            return Some(taken);
        }
        more(from, unread).await?;
    }
}
