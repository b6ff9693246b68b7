//! A client that only supports HTTP.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) async fn connect(url: &str) -> TcpStream {
    TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// All bytes until the server closes; those before a reset are included.
pub(crate) async fn raw(url: &str, request: &str) -> Vec<u8> {
    let mut stream = connect(url).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut came = Vec::new();
    let reading = stream.read_to_end(&mut came);
    let _ = in_time(reading).await;
    came
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(300), future).await.expect("it takes too long")
}
