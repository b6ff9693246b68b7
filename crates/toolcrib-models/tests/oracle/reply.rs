//! The recorded answers.

use std::fs;

use super::{
    api::Api,
    case::{folder, names},
};

/// How an answer comes over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In one piece.
    Whole,
    /// In pieces of few bytes, cut within lines and characters.
    Pieces,
    /// With the other ends of lines.
    CrLf,
}

/// A response of a vendor's server: head and body of a file in `streams/`.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    head: String,
    pieces: Vec<Vec<u8>>,
}

impl Reply {
    /// The replies of a vendor.
    pub(crate) fn names(api: Api) -> Vec<String> {
        names(&folder("streams").join(api.as_str()), ".http")
    }

    pub(crate) fn read(api: Api, name: &str, form: Form) -> Self {
        let path = folder("streams").join(api.as_str()).join(format!("{name}.http"));
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
        let (head, body) = text.split_once("\n\n").expect("an empty line ends the head");
        let body = match form {
            Form::CrLf => body.replace('\n', "\r\n"),
            Form::Whole | Form::Pieces => body.to_owned(),
        };
        let size = if form == Form::Pieces { 5 } else { body.len().max(1) };
        Self {
            head: head.replace('\n', "\r\n"),
            pieces: body.as_bytes().chunks(size).map(<[u8]>::to_vec).collect(),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        let status = self.head.split(' ').nth(1).expect("a status line");
        status.parse().unwrap()
    }

    /// Its bytes on the wire, each chunk apart.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Vec<u8>> {
        let head =
            format!("{}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n", self.head);
        let chunk = |piece: &Vec<u8>| {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            chunk
        };
        std::iter::once(head.into_bytes())
            .chain(self.pieces.iter().map(chunk))
            .chain(std::iter::once(b"0\r\n\r\n".to_vec()))
    }
}
