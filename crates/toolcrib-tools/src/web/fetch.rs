//! The body of `fetch_url`: one call, one request, one piece of the page.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, LazyLock},
};

use serde_json::Value;
use toolcrib_capabilities::http::{HttpResponse, Url, parse_url};
use toolcrib_core::{ErrorCode, Lanes, ToolContext, ToolError, ToolOutput};

use super::{
    CURSOR, URL, failure,
    page::{Document, Format, PageError, format_of, read},
    request,
};
use crate::{
    arguments::{refused, text},
    http::{answer::one_line, cause, exchange::Exchange},
};

/// How much of a page one call returns, in characters.
pub(super) const PIECE: usize = 16_000;

/// The least of it, where the project limits a result to fewer characters.
pub(super) const LEAST_PIECE: usize = 500;

/// The room for the lines before the text, in characters.
pub(super) const HEAD: usize = 400;

/// How much of a title and an URL is shown, in characters.
const MOST_TITLE: usize = 200;
const MOST_SHOWN_URL: usize = 500;

const ACCEPT: &str = "text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8, \
                      application/json;q=0.8, */*;q=0.1";

/// The handler of the tool.
pub(super) struct Body {
    pub(super) exchange: Exchange,
    pub(super) piece: usize,
}

impl Body {
    pub(super) async fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let url = text(&args, URL).unwrap_or_default();
        let cursor = text(&args, CURSOR).map(|text| Cursor::parse(&text)).transpose()?;
        check_port(url.trim())?;
        let client = self.exchange.client(&cx)?;
        let request = request(&self.exchange, url.trim(), ACCEPT);
        let (asked, response) = self.exchange.response(&client, request, &cx).await?;
        if !response.status.is_success() {
            return Err(failure::status(&response, &asked));
        }
        let (url, cause) = (response.final_url.clone(), cause::answered(&asked, &response));
        let document = document(response, &cx).await.map_err(|error| error.caused_by(cause))?;
        Ok(ToolOutput::text(self.shown(&document, &url, cursor.as_ref(), &cx)?))
    }

    /// The piece at the cursor, with what it is.
    fn shown(
        &self,
        document: &Document,
        url: &Url,
        cursor: Option<&Cursor>,
        cx: &ToolContext,
    ) -> Result<String, ToolError> {
        // Before it is cut: a secret in two pieces is not recognized.
        let whole = cx.redacted(&document.text);
        let digest = digest(&whole);
        let (start, changed) = match cursor {
            None => (0, false),
            Some(Cursor { at, digest: of }) => (*at, *of != digest),
        };
        let start = whole.floor_char_boundary(start);
        if start > 0 && start >= whole.len() {
            return Err(refused(CURSOR, "is after the end of the page; read it from the start"));
        }
        let rest = whole.get(start..).unwrap_or_default();
        let piece = piece(rest, self.piece);
        let end = start + piece.len();
        let mut head = String::new();
        if let Some(title) = &document.title {
            head += &format!("Title: {}\n", one_line(&cx.redacted(title), MOST_TITLE));
        }
        head += &format!("URL: {}\n", one_line(&cx.redacted(url.as_str()), MOST_SHOWN_URL));
        if changed {
            head += "The page has changed since the piece before; text may be missing between.\n";
        }
        if end < whole.len() {
            let cursor = Cursor { at: end, digest };
            head += &format!(
                "Part: bytes {start} to {end} of {}; to read on, cursor = \"{}\"\n",
                whole.len(),
                cursor.shown()
            );
        } else if start > 0 {
            head += &format!("Part: bytes {start} to {end} of {end}, the end\n");
        }
        if let Some(note) = document.note {
            head += &format!("Note: {note}\n");
        }
        let piece = if whole.trim().is_empty() {
            "(no text; a page like this is often built by a script, so look for another source)"
        } else {
            piece
        };
        Ok(format!("{head}\n{piece}"))
    }
}

/// The ports that browsers do not request, since other protocols than HTTP use them (Fetch standard,
/// "bad port").
const BLOCKED_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Refuses a URL with a port that browsers block. Redirects lead to no other port than that of the
/// URL and the usual ones.
fn check_port(url: &str) -> Result<(), ToolError> {
    let port = parse_url(url).ok().and_then(|url| url.port());
    match port.filter(|port| BLOCKED_PORTS.contains(port)) {
        Some(port) => {
            Err(refused(URL, &format!("has the port {port}, which is not one of the web")))
        }
        None => Ok(()),
    }
}

/// Reads a response off the async workers. The work of a call that ended stops at the next element,
/// or after the conversion.
async fn document(response: HttpResponse, cx: &ToolContext) -> Result<Document, ToolError> {
    static LANES: LazyLock<Lanes> = LazyLock::new(Lanes::default);
    let host: Arc<str> = response.final_url.host_str().unwrap_or_default().into();
    let format = format_of(&response).map_err(|named| {
        let text = format!(
            "`{host}` answered {named} of {} bytes; only HTML, Markdown, text and JSON can be read",
            response.body.len()
        );
        ToolError::failed(text)
    })?;
    if format == Format::Text && response.body.is_empty() {
        return Ok(Document::default());
    }
    let waiting = cx.cancellation().child_token();
    let ended = waiting.clone();
    let _waiting = waiting.clone().drop_guard();
    let work = LANES.run(&host, move || read(&response, format, &ended));
    let read = waiting.run_until_cancelled(work).await.unwrap_or(Ok(Err(PageError::Cancelled)));
    match read {
        Ok(Ok(document)) => Ok(document),
        Ok(Err(PageError::Cancelled)) => {
            Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled"))
        }
        Ok(Err(PageError::TooComplex)) => Err(ToolError::failed(format!(
            "the page of `{host}` has too many or too deeply nested elements to be read; use \
             another source"
        ))),
        // The parser panicked, which costs only this page.
        Err(panic) => {
            let text = format!("the page of `{host}` cannot be read as HTML; use another source");
            Err(ToolError::failed(text).caused_by(panic))
        }
    }
}

/// A place in a page, and a digest of that page.
struct Cursor {
    at: usize,
    digest: u32,
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, ToolError> {
        let read = || {
            let (at, digest) = text.split_once('-')?;
            Some(Self { at: at.parse().ok()?, digest: u32::from_str_radix(digest, 16).ok()? })
        };
        read().ok_or_else(|| {
            refused(CURSOR, "is not one of a result; leave it out to read from the start")
        })
    }

    fn shown(&self) -> String {
        format!("{}-{:08x}", self.at, self.digest)
    }
}

fn digest(text: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    u32::try_from(hasher.finish() >> 32).unwrap_or_default()
}

/// The beginning of a text, up to the last end of a line where there is one in its second half.
fn piece(text: &str, chars: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(chars) else { return text };
    let cut = text.get(..end).unwrap_or_default();
    match cut.rfind('\n') {
        Some(at) if at >= end / 2 => cut.get(..=at).unwrap_or(cut),
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_pieces_of_a_text_are_the_text(text in "[a-zé\n😀 ]{0,200}", chars in 1usize..40) {
            let (mut at, mut joined) = (0, String::new());
            while at < text.len() {
                let piece = piece(&text[at..], chars);
                prop_assert!(!piece.is_empty() && piece.chars().count() <= chars);
                joined += piece;
                at += piece.len();
            }
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn a_cursor_is_read_as_it_is_shown(at: usize, digest: u32) {
            let read = Cursor::parse(&Cursor { at, digest }.shown()).unwrap();
            prop_assert_eq!((read.at, read.digest), (at, digest));
        }
    }
}
