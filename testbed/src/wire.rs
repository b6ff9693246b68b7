//! How an answer's bytes reach the network.

use std::{convert::Infallible, time::Duration};

use axum::body::{Body, Bytes};
use futures_util::stream;

/// A body of these pieces, one after the other. With `chunk_bytes` they are joined and cut anew,
/// wherever that falls.
pub(crate) fn body(pieces: Vec<Bytes>, chunk_bytes: Option<usize>, delay: Duration) -> Body {
    let pieces = match chunk_bytes {
        Some(bytes) => recut(&pieces, bytes.max(1)),
        None => pieces,
    };
    if let [only] = pieces.as_slice() {
        return Body::from(only.clone());
    }
    let pieces = pieces.into_iter().enumerate();
    Body::from_stream(stream::unfold(pieces, move |mut pieces| async move {
        let (position, piece) = pieces.next()?;
        if position > 0 && !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        // What is there at once may leave as one; so each piece is let out by itself.
        tokio::task::yield_now().await;
        Some((Ok::<_, Infallible>(piece), pieces))
    }))
}

fn recut(pieces: &[Bytes], bytes: usize) -> Vec<Bytes> {
    let mut rest = Bytes::from(pieces.concat());
    let mut cut = Vec::new();
    while rest.len() > bytes {
        cut.push(rest.split_to(bytes));
    }
    cut.push(rest);
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_anew_also_inside_a_character() {
        let pieces = [Bytes::from("a€"), Bytes::from("bc")];
        assert_eq!(recut(&pieces, 2), [&b"a\xe2"[..], b"\x82\xac", b"bc"]);
        assert_eq!(recut(&pieces, 100), ["a€bc"]);
    }
}
