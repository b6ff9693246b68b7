//! The URL of a call: arguments stay inside one segment of the path or one value of the query,
//! and never change what surrounds them.

use std::{borrow::Cow, fmt::Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};
use serde_json::Value;
use toolcrib_capabilities::http::{HttpError, parse_url};
use toolcrib_core::ToolError;

use crate::{
    arguments::{argument_text, present, refused, text},
    template::{Part, Template},
};

/// All but what means nothing in any part of a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A URL with places, read into its parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct UrlTemplate {
    /// Scheme, host and port, as declared.
    origin: String,
    path: Vec<Vec<Part>>,
    query: Vec<Pair>,
}

/// A pair of the query, between two `&`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Pair {
    name: String,
    /// None where there is no `=`.
    value: Option<Vec<Part>>,
}

/// An error, with its byte where known.
pub(super) type PositionedError = (Option<usize>, String);

impl UrlTemplate {
    /// Reads a template without secrets.
    pub(super) fn read(template: &Template) -> Result<Self, PositionedError> {
        let url = |problem: &str| (None, problem.to_owned());
        let misplaced = |part: &Part, problem: fn(&str) -> String| match part {
            Part::Param { name, offset } => (Some(*offset), problem(name)),
            Part::Literal(_) | Part::Secret { .. } => url("it cannot be read"),
        };
        let in_origin = |name: &str| {
            format!(
                "`{name}` is in the scheme, host or port; those may not depend on an \
                 argument"
            )
        };
        let in_name = |name: &str| {
            format!("`{name}` is in a name of the query; an argument may only follow a `=`")
        };

        let (first, others) = match template.parts() {
            [] => return Err(url("it is empty")),
            [Part::Literal(first), others @ ..] => (first, others),
            [place, ..] => return Err(misplaced(place, in_origin)),
        };
        let authority = first.find("://").map_or(0, |at| at + "://".len());
        let end = first.get(authority..).and_then(|rest| rest.find(['/', '?', '#', '\\']));
        let (origin, rest) = match (end, others.first()) {
            (Some(end), _) => first.split_at(authority + end),
            (None, None) => (first.as_str(), ""),
            (None, Some(place)) => return Err(misplaced(place, in_origin)),
        };
        parse_url(origin).map_err(|error| match error {
            HttpError::Url { problem } => url(&problem),
            other => url(&other.to_string()),
        })?;

        let mut read = Self { origin: origin.to_owned(), path: Vec::new(), query: Vec::new() };
        let rest = Part::Literal(rest.to_owned());
        for part in std::iter::once(&rest).chain(others) {
            match part {
                Part::Literal(literal) => {
                    literal.chars().try_for_each(|c| read.literal(c)).map_err(url)?;
                }
                place => read.place(place).map_err(|()| misplaced(place, in_name))?,
            }
        }
        let goes_up = |segment: &Vec<Part>| match segment.as_slice() {
            [Part::Literal(literal)] => is_dot(literal),
            _ => false,
        };
        if read.path.iter().any(goes_up) {
            return Err(url("a segment of its path is `.` or `..`; write the path without it"));
        }
        Ok(read)
    }

    fn literal(&mut self, c: char) -> Result<(), &'static str> {
        if c.is_control() || matches!(c, ' ' | '\\') {
            return Err(
                "it contains a space, a backslash or a control character; percent-encode it",
            );
        }
        if c == '#' {
            return Err("the fragment after a `#` is never sent; drop it, or write `%23`");
        }
        match self.query.last_mut() {
            None if c == '/' => self.path.push(Vec::new()),
            None if c == '?' => self.query.push(Pair::default()),
            None => self.path.last_mut().into_iter().for_each(|segment| push(segment, c)),
            Some(_) if c == '&' => self.query.push(Pair::default()),
            Some(Pair { value: Some(value), .. }) => push(value, c),
            Some(pair) if c == '=' => pair.value = Some(Vec::new()),
            Some(pair) => pair.name.push(c),
        }
        Ok(())
    }

    fn place(&mut self, place: &Part) -> Result<(), ()> {
        let parts = match self.query.last_mut() {
            None => self.path.last_mut().ok_or(())?,
            Some(pair) => pair.value.as_mut().ok_or(())?,
        };
        parts.push(place.clone());
        Ok(())
    }

    /// The parameters with a place in the path, and where their names begin.
    pub(super) fn in_path(&self) -> impl Iterator<Item = (&str, usize)> {
        self.path.iter().flatten().filter_map(|part| match part {
            Part::Param { name, offset } => Some((name.as_str(), *offset)),
            Part::Literal(_) | Part::Secret { .. } => None,
        })
    }

    /// The URL of a call.
    pub(super) fn fill(&self, args: &Value) -> Result<String, ToolError> {
        let mut url = self.origin.clone();
        for segment in &self.path {
            url.push('/');
            url.push_str(&fill_segment(segment, args)?);
        }
        let mut before = '?';
        for Pair { name, value } in &self.query {
            let texts = match value {
                None => vec![String::new()],
                Some(parts) => {
                    let values = fill_value(parts, args);
                    values.into_iter().map(|value| format!("={value}")).collect()
                }
            };
            for text in texts {
                url.push(before);
                url.push_str(name);
                url.push_str(&text);
                before = '&';
            }
        }
        Ok(url)
    }
}

fn fill_segment(segment: &[Part], args: &Value) -> Result<String, ToolError> {
    let mut filled = String::new();
    let mut place = None;
    for part in segment {
        match part {
            Part::Literal(literal) => filled.push_str(literal),
            Part::Param { name, .. } | Part::Secret { name, .. } => {
                place = Some(name);
                let argument = text(args, name).ok_or_else(|| refused(name, "must be given"))?;
                check_path(name, &argument)?;
                encode(&mut filled, &argument);
            }
        }
    }
    match place {
        // Those who read URLs take such segments out, and the path would be another one.
        Some(name) if filled.is_empty() => Err(refused(name, "must not be empty")),
        Some(name) => check_path(name, &filled).map(|()| filled),
        None => Ok(filled),
    }
}

/// The values of a pair: as a rule one, none where an argument is absent, and one for each item of
/// a list that is the whole value.
fn fill_value(parts: &[Part], args: &Value) -> Vec<String> {
    let mut places = parts.iter().filter_map(|part| match part {
        Part::Param { name, .. } => Some(name),
        Part::Literal(_) | Part::Secret { .. } => None,
    });
    let list = match (places.next(), places.next()) {
        (Some(name), None) => present(args, name).and_then(Value::as_array),
        _ => None,
    };
    let fill = |item: Option<&Value>| {
        let mut filled = String::new();
        for part in parts {
            match part {
                Part::Literal(literal) => filled.push_str(literal),
                Part::Param { name, .. } | Part::Secret { name, .. } => match item {
                    Some(item) => encode(&mut filled, &argument_text(item)),
                    None => encode(&mut filled, &text(args, name)?),
                },
            }
        }
        Some(filled)
    };
    match list {
        Some(items) => items.iter().filter_map(|item| fill(Some(item))).collect(),
        None => fill(None).into_iter().collect(),
    }
}

/// Refuses a text that a server may read as more than a part of one segment: many servers, and what is before
/// them, decode a path more than once, and some read a backslash as `/`. Each value is checked, and the filled
/// segment, in which several values together may be such a text.
pub(crate) fn check_path(argument: &str, text: &str) -> Result<(), ToolError> {
    /// More layers of encoding than any value has for a good reason.
    const MOST_LAYERS: usize = 8;
    let mut bytes = Cow::from(text.as_bytes());
    for _ in 0..MOST_LAYERS {
        match Cow::from(percent_decode(&bytes)) {
            Cow::Borrowed(_) => break,
            Cow::Owned(decoded) => bytes = decoded.into(),
        }
    }
    if bytes.contains(&b'\\') {
        return Err(refused(argument, "must not contain a backslash, which servers read as a `/`"));
    }
    // Some servers cut off what follows a `;` in a segment.
    let mut segments = bytes.split(|byte| *byte == b'/');
    let is_dots = |segment: &[u8]| {
        let segment = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        matches!(segment, b"." | b"..")
    };
    let is_encoded = matches!(Cow::from(percent_decode(&bytes)), Cow::Owned(_));
    if segments.any(is_dots) || is_encoded {
        return Err(refused(
            argument,
            "must not contain a `.` or `..` as a part of a path, percent-encoded or not",
        ));
    }
    Ok(())
}

pub(crate) fn encode(into: &mut String, argument: &str) {
    // Writing to a string cannot fail.
    let _ = write!(into, "{}", utf8_percent_encode(argument, ENCODED));
}

/// Whether URL parsers read a segment as the current or the parent folder.
fn is_dot(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

fn push(parts: &mut Vec<Part>, c: char) {
    match parts.last_mut() {
        Some(Part::Literal(literal)) => literal.push(c),
        _ => parts.push(Part::Literal(c.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<UrlTemplate, PositionedError> {
        UrlTemplate::read(&Template::parse(text).unwrap())
    }

    #[allow(clippy::needless_pass_by_value, reason = "read as it is written: json!")]
    fn fill(text: &str, args: Value) -> Result<String, String> {
        read(text).unwrap().fill(&args).map_err(|error| error.message)
    }

    const HOSTILE: [&str; 22] = [
        "a/b",
        "..admin",
        "a..%2fadmin",
        "%2e%2e%2e",
        "/",
        "//evil.example/",
        "100%25",
        "?x=1",
        "x&admin=1",
        "x=y",
        "#f",
        "a b",
        "+",
        "%",
        "%00",
        "\0",
        "\r\nHost: evil",
        "\n",
        "é\u{202e}",
        "@evil.example",
        ":80",
        ";jsessionid=1",
    ];

    #[test]
    fn nothing_that_is_passed_changes_what_is_around_it() {
        for value in HOSTILE {
            let args = json!({ "x": value });
            let template = "https://api.example/v1/{x}/items?q={x}&last=1";
            let url = parse_url(&fill(template, args).unwrap()).unwrap();
            assert_eq!(url.origin().ascii_serialization(), "https://api.example", "{value:?}");
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            assert_eq!(segments.len(), 3, "{value:?}: {url}");
            assert_eq!((segments[0], segments[2]), ("v1", "items"), "{value:?}");
            let decoded = percent_encoding::percent_decode_str(segments[1]).decode_utf8().unwrap();
            assert_eq!(decoded, value);
            let query: Vec<_> = url.query_pairs().collect();
            assert_eq!(query, [("q".into(), value.into()), ("last".into(), "1".into())]);
        }
    }

    #[test]
    fn a_segment_that_would_vanish_is_refused() {
        for (template, args) in [
            ("https://a.example/x/{x}/y", json!({ "x": ".." })),
            ("https://a.example/{x}", json!({ "x": "." })),
            ("https://a.example/{x}", json!({ "x": "" })),
            ("https://a.example/.{x}", json!({ "x": "." })),
            ("https://a.example/%2e{x}", json!({ "x": "." })),
            ("https://a.example/{x}", json!({})),
            ("https://a.example/{x}", json!({ "x": null })),
        ] {
            let message = fill(template, args).unwrap_err();
            assert!(message.starts_with("`x` must"), "{message}");
        }
        let dots = json!({ "x": "...", "y": ".5", "z": 7 });
        let url = fill("https://a.example/{x}/v{y}/{z}", dots).unwrap();
        assert_eq!(parse_url(&url).unwrap().path(), "/.../v.5/7");
    }

    #[test]
    fn a_value_that_a_server_may_read_as_another_path_is_refused() {
        let deep = (0..20).fold("..".to_owned(), |text, _| encoded_twice(&text));
        for value in [
            "..",
            ".",
            "../admin",
            "a/../b",
            "a/./b",
            "a/..",
            "%2e%2e",
            "%2E%2e/x",
            ".%2e/x",
            "..%2fadmin",
            "%252e%252e%252fadmin",
            "a%2f..%2fb",
            "%25252e%25252e",
            "..;/admin",
            "..;v=1/x",
            "\\",
            "a\\b",
            "..\\x",
            "%5c",
            "a%255c..%255cb",
            &deep,
        ] {
            for template in ["https://a.example/v1/{x}/items", "https://a.example/v{x}.json"] {
                let message = fill(template, json!({ "x": value })).unwrap_err();
                assert!(message.starts_with("`x` must"), "{value:?}: {message}");
            }
            assert!(fill("https://a.example/?q={x}", json!({ "x": value })).is_ok(), "{value:?}");
        }
    }

    fn encoded_twice(text: &str) -> String {
        let mut into = String::new();
        encode(&mut into, &text.replace('.', "%2e"));
        into
    }

    #[test]
    fn what_is_absent_leaves_its_pair_out_and_a_list_repeats_it() {
        let template = "https://a.example?flag&a={a}&b=x{b}y&c={a}-{b}&d=";
        let url = |args| fill(template, args).unwrap();
        assert_eq!(url(json!({})), "https://a.example?flag&d=");
        assert_eq!(url(json!({ "a": null, "b": 1 })), "https://a.example?flag&b=x1y&d=");
        assert_eq!(
            url(json!({ "a": true, "b": ["p", "q r"] })),
            "https://a.example?flag&a=true&b=xpy&b=xq%20ry&c=true-%5B%22p%22%2C%22q%20r%22%5D&d="
        );
        assert_eq!(
            fill("https://a.example/?a={a}", json!({ "a": [] })).unwrap(),
            "https://a.example/"
        );
        let object = fill("https://a.example/?a={a}", json!({ "a": { "b": 1 } })).unwrap();
        assert_eq!(object, "https://a.example/?a=%7B%22b%22%3A1%7D");
    }

    #[test]
    fn what_is_written_stays_as_it_is() {
        for url in [
            "https://a.example",
            "http://a.example:8080/",
            "https://a.example/a%20b//c/",
            "https://a.example/?",
            "https://a.example/é?a=b=c&&d/e?f",
            "https://[2001:db8::1]:8/x",
        ] {
            assert_eq!(fill(url, json!({})).unwrap(), url);
        }
    }

    #[test]
    fn where_no_place_may_stand_is_said() {
        const IN_ORIGIN: &str = "in the scheme, host or port";
        const IN_NAME: &str = "in a name of the query";
        for template in [
            "{x}",
            "{x}://a.example/",
            "https://{x}/",
            "https://{x}.example/",
            "https://a{x}/",
            "https://a.example:{x}/",
            "https://{x}@a.example/",
            "https:{x}",
            "https://{x}",
        ] {
            let (offset, problem) = read(template).unwrap_err();
            assert!(problem.contains(IN_ORIGIN), "{template}: {problem}");
            assert_eq!(offset, template.find('{').map(|at| at + 1), "{template}");
        }
        for template in
            ["https://a.example/?{x}=1", "https://a.example/?{x}", "https://a.example?a&{x}"]
        {
            let (_, problem) = read(template).unwrap_err();
            assert!(problem.contains(IN_NAME), "{template}: {problem}");
        }
        for template in [
            "",
            "a.example/x",
            "/x",
            "ftp://a.example/",
            "https://u:p@a.example/",
            "https:///x",
            "https://a.example/x y",
            "https://a.example/#x",
            "https://a.example/a\\b",
            "https://a.example\\b/{x}",
            "https://a.example/\t",
            "https://a.example/x/../y",
            "https://a.example/%2E",
            "https://a..example/",
            "https://a b.example/{x}",
        ] {
            let (_, problem) = read(template).unwrap_err();
            assert!(
                !problem.contains(IN_ORIGIN) && !problem.contains(IN_NAME),
                "{template}: {problem}"
            );
        }
    }
}
