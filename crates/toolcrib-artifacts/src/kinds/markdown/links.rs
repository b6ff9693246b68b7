//! The links and images of a line of Markdown.

/// A link, or an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) text: String,
    pub(super) target: String,
    pub(super) is_image: bool,
}

/// The number of brackets that begin no link, per line. The end of each is searched for in a bounded
/// part of the line; a line with more is not prose, and its rest has no links.
const STRAY: u32 = 64;

/// The links of one line, in order: `[text](target)`, `![text](target)`, `<https://…>`, and the
/// definitions `[name]: target`. Text in code is excluded.
pub(super) fn links(line: &str) -> Vec<Link> {
    if let Some(link) = definition(line) {
        return vec![link];
    }
    let mut found = Vec::new();
    let (mut rest, mut stray) = (line, 0);
    while stray < STRAY
        && let Some(at) = rest.find(['[', '`', '<', '\\'])
    {
        let (before, here) = rest.split_at(at);
        let after = here.get(1..).unwrap_or_default();
        rest = match here.as_bytes().first() {
            Some(b'\\') => {
                let mut chars = after.chars();
                chars.next();
                chars.as_str()
            }
            Some(b'`') => behind_code(here),
            Some(b'<') => match automatic(after) {
                Some((link, rest)) => {
                    found.push(link);
                    rest
                }
                None => after,
            },
            _ => match inline(after) {
                None => {
                    stray += 1;
                    after
                }
                Some((text, target, rest)) => {
                    let is_image = before.ends_with('!');
                    // The text of a link may contain an image.
                    found.extend(if is_image { Vec::new() } else { links(&text) });
                    found.push(Link { text, target, is_image });
                    rest
                }
            },
        };
    }
    found
}

fn definition(line: &str) -> Option<Link> {
    let (name, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let target = target.split_whitespace().next()?;
    let target = target.trim_start_matches('<').trim_end_matches('>');
    let is_plain = !name.contains(['[', ']', '`']) && !name.starts_with('^');
    is_plain.then(|| Link { text: name.to_owned(), target: target.to_owned(), is_image: false })
}

/// The rest after inline code; after its backticks if it is not closed.
fn behind_code(line: &str) -> &str {
    let rest = line.trim_start_matches('`');
    let marks = line.get(..line.len() - rest.len()).unwrap_or_default();
    let mut from = 0;
    while let Some(at) = rest.get(from..).and_then(|rest| rest.find(marks)) {
        let end = from + at + marks.len();
        let behind = rest.get(end..).unwrap_or_default();
        if !behind.starts_with('`') {
            return behind;
        }
        from = end + (behind.len() - behind.trim_start_matches('`').len());
    }
    rest
}

fn automatic(line: &str) -> Option<(Link, &str)> {
    let (target, rest) = line.split_once('>')?;
    let is_link = target.contains("://") && !target.contains([' ', '<']);
    is_link.then(|| {
        (Link { text: target.to_owned(), target: target.to_owned(), is_image: false }, rest)
    })
}

/// Text and target after a `[`, and the rest of the line.
fn inline(line: &str) -> Option<(String, String, &str)> {
    let text_end = closing(line, '[', ']')?;
    let text = line.get(..text_end)?;
    let target = line.get(text_end + 1..)?.strip_prefix('(')?;
    let target_end = closing(target, '(', ')')?;
    let inside = target.get(..target_end)?.trim();
    // A title may follow.
    let inside = match inside.strip_prefix('<') {
        Some(angled) => angled.split('>').next()?,
        None => inside.split_whitespace().next().unwrap_or_default(),
    };
    Some((text.to_owned(), inside.to_owned(), target.get(target_end + 1..)?))
}

/// The position of the closing bracket, if it is near.
fn closing(line: &str, open: char, close: char) -> Option<usize> {
    const NEAR: usize = 1_024;
    let mut depth = 0_u32;
    let mut is_escaped = false;
    for (at, c) in line.char_indices().take(NEAR) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == open => depth += 1,
            _ if c == close && depth == 0 => return Some(at),
            _ if c == close => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<String> {
        links(line)
            .into_iter()
            .map(|link| {
                format!("{}{}={}", if link.is_image { "!" } else { "" }, link.text, link.target)
            })
            .collect()
    }

    #[test]
    fn links_are_found_and_code_is_not_looked_into() {
        let cases: [(&str, &[&str]); 11] = [
            (
                "see [the docs](https://a.b/c \"title\") and ![x](y.png)",
                &["the docs=https://a.b/c", "!x=y.png"],
            ),
            ("[![badge](b.svg)](https://ci)", &["!badge=b.svg", "![badge](b.svg)=https://ci"]),
            ("<https://a.b> <b>", &["https://a.b=https://a.b"]),
            ("[ref]: <https://a.b> 'title'", &["ref=https://a.b"]),
            ("`[no](no)` ``[no](`no)`` [yes](y)", &["yes=y"]),
            ("[a](b(c)d)", &["a=b(c)d"]),
            ("\\[no](no)", &[]),
            ("[no] (no) [^1]: note", &[]),
            ("[no](", &[]),
            ("[[x](y)", &["x=y"]),
            ("", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_of_brackets_takes_no_time_to_speak_of() {
        // The end of each bracket is searched once, in a line of bounded length.
        assert_eq!(links(&"[".repeat(4_096)), []);
        assert_eq!(links(&"[a](".repeat(1_024)), []);
        assert_eq!(links(&"![a".repeat(1_024)), []);
        assert_eq!(links(&"`".repeat(4_095)), []);
    }
}
