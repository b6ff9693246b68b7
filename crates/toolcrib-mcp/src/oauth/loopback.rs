//! Receives the redirect of a login: an HTTP server on the loopback address, for one path, until the
//! answer has come.

use std::{net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::error::OAuthError;

const PATH: &str = "/callback";
/// The size and time limit of a request's head.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const HEAD_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Loopback {
    listener: TcpListener,
    authority: String,
}

impl Loopback {
    /// Listens on a port; 0 for a free one.
    pub(super) async fn bind(port: u16) -> Result<Self, OAuthError> {
        let at = (Ipv4Addr::LOCALHOST, port);
        let fail = |source| OAuthError::Listen { address: format!("127.0.0.1:{port}"), source };
        let listener = TcpListener::bind(at).await.map_err(fail)?;
        let port = listener.local_addr().map_err(fail)?.port();
        Ok(Self { listener, authority: format!("127.0.0.1:{port}") })
    }

    /// The exact address of the redirect.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://{}{PATH}", self.authority)
    }

    /// The first answer that `take` accepts; it receives the query of each redirect, and returns
    /// `None` for one of another login.
    pub(super) async fn answer<T>(
        &self,
        mut take: impl FnMut(&str) -> Option<Result<T, OAuthError>>,
    ) -> Result<T, OAuthError> {
        loop {
            // One at a time: a person has one browser. A slow visitor is dropped after a moment.
            let Ok((mut stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let head = timeout(HEAD_WITHIN, head(&mut stream)).await.ok().flatten();
            let query = head.as_deref().and_then(|head| self.query(head));
            let taken = query.and_then(&mut take);
            let (status, text) = match &taken {
                Some(Ok(_)) => ("200 OK", "The login is complete. You can close this page."),
                Some(Err(_)) => ("400 Bad Request", "The login has failed. The terminal says why."),
                None => ("404 Not Found", "Nothing is here."),
            };
            let _ = timeout(HEAD_WITHIN, respond(&mut stream, status, text)).await;
            if let Some(taken) = taken {
                return taken;
            }
        }
    }

    /// The query of a request for the redirect address; `None` for any other request, such as one
    /// that a page sent under another name of this host.
    fn query<'a>(&self, head: &'a str) -> Option<&'a str> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let mut hosts = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        let is_here = hosts.next() == Some(&*self.authority) && hosts.next().is_none();
        let (path, query) = target.split_once('?')?;
        (method == "GET" && path == PATH && is_here).then_some(query)
    }
}

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            read.truncate(end);
            return String::from_utf8(read).ok();
        }
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 || read.len() > MAX_HEAD_BYTES {
            return None;
        }
        read.extend_from_slice(buffer.get(..count)?);
    }
}

async fn respond(stream: &mut TcpStream, status: &str, text: &str) -> std::io::Result<()> {
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}
