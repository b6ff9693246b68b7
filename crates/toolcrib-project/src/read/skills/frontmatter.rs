//! The frontmatter of a Markdown file, key by key.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Severity, Spot, suggest};

use super::{
    quoted,
    yaml::{self, Node},
};

/// The line on which frontmatter begins: the one after the first `---`.
pub(crate) const FIRST_LINE: usize = 2;

/// A name with a remark.
#[derive(Debug)]
pub(crate) struct RemarkedName {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) remark: Option<Arc<str>>,
}

impl RemarkedName {
    fn new(name: &str, remark: &str, at: Spot) -> Self {
        let remark = remark.trim();
        Self {
            name: Located { value: name.trim().into(), at },
            remark: (!remark.is_empty()).then(|| remark.into()),
        }
    }
}

/// A mapping of frontmatter. Its getters return `None` for an absent key, and for an invalid value,
/// which they record.
pub(crate) struct Keys<'a> {
    entries: Vec<(Located<Arc<str>>, Located<Node>)>,
    pub(crate) at: Spot,
    pub(crate) problems: &'a Problems,
    known: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    /// The keys of a file's frontmatter; `None` if it is not a mapping.
    pub(crate) fn of_file(
        frontmatter: &str,
        file: &Arc<str>,
        problems: &'a Problems,
    ) -> Option<Self> {
        let parsed = yaml::parse(frontmatter, file, FIRST_LINE);
        let is_read = matches!(&parsed, Ok(node) if !node.as_ref().is_some_and(quoted::is_misread));
        let mended = match is_read {
            true => None,
            false => quoted::parse(frontmatter, file, FIRST_LINE, problems),
        };
        match mended.map_or(parsed, Ok) {
            Ok(Some(node)) => Self::of(node, "the frontmatter", problems),
            Ok(None) => {
                let at = Spot::start_of(Arc::clone(file));
                Some(Self { entries: Vec::new(), at, problems, known: Vec::new() })
            }
            Err(problem) => {
                problems.push(problem);
                None
            }
        }
    }

    fn of(node: Located<Node>, what: &str, problems: &'a Problems) -> Option<Self> {
        let Node::Map(map) = node.value else {
            let message = format!("{what} must be a mapping of keys to values");
            problems.push(Diagnostic::error(&node.at, message));
            return None;
        };
        let mut entries: Vec<(Located<Arc<str>>, Located<Node>)> = Vec::new();
        for (key, value) in map {
            let Node::Text(text) = key.value else {
                problems.push(Diagnostic::warning(&key.at, "this key is not a text"));
                continue;
            };
            let key = Located { value: text.text, at: key.at };
            if entries.iter().any(|(earlier, _)| earlier.value == key.value) {
                let message = format!("`{}` occurs twice in {what}", key.value);
                problems.push(Diagnostic::error(&key.at, message));
            } else {
                entries.push((key, value));
            }
        }
        Some(Self { entries, at: node.at, problems, known: Vec::new() })
    }

    fn take(&mut self, key: &'static str) -> Option<Located<Node>> {
        self.known.push(key);
        let position = self.entries.iter().position(|(name, _)| *name.value == *key)?;
        Some(self.entries.remove(position).1)
    }

    /// Accepts a key whose value is ignored.
    pub(crate) fn pass(&mut self, key: &'static str) {
        self.take(key);
    }

    /// A scalar, or its problem, as the end of a sentence about the key.
    pub(crate) fn text(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Located<Arc<str>>>, Located<&'static str>> {
        let Some(Located { value, at }) = self.take(key) else { return Ok(None) };
        match value {
            Node::Text(text) if text.text.trim().is_empty() => {
                Err(Located { value: "is blank", at })
            }
            Node::Text(text) => Ok(Some(Located { value: text.text, at })),
            _ => Err(Located { value: "must be a text", at }),
        }
    }

    /// A scalar that is required and must not be blank.
    pub(crate) fn required_text(
        &mut self,
        key: &'static str,
        example: &str,
    ) -> Option<Located<Arc<str>>> {
        let problem = match self.text(key) {
            Ok(Some(text)) => return Some(text),
            Ok(None) => {
                Diagnostic::error(&self.at, format!("`{key}` is missing in the frontmatter"))
                    .help(format!("write for example: {key}: {example}"))
            }
            Err(wrong) => Diagnostic::error(&wrong.at, format!("`{key}` {}", wrong.value)),
        };
        self.problems.push(problem);
        None
    }

    /// Names in one text, split by `is_separator`, or in a list of texts. Other values are left
    /// out, and recorded with the given severity.
    pub(crate) fn names(
        &mut self,
        key: &'static str,
        is_separator: fn(char) -> bool,
        severity: Severity,
    ) -> Option<Vec<Located<Arc<str>>>> {
        let value = self.take(key)?;
        let nodes = match value.value {
            Node::List(items) => items,
            _ => vec![value],
        };
        let mut names = Vec::new();
        for node in nodes {
            let Node::Text(text) = node.value else {
                let message = format!("`{key}` must be names, in one text or in a list");
                self.problems.push(match severity {
                    Severity::Error => Diagnostic::error(&node.at, message),
                    Severity::Warning => Diagnostic::warning(&node.at, message),
                });
                continue;
            };
            let mut rest = &*text.text;
            while let Some(start) = rest.find(|c| !is_separator(c)) {
                let (skipped, from) = rest.split_at(start);
                let end = from.find(is_separator).unwrap_or(from.len());
                let (name, after) = from.split_at(end);
                let before = text.text.len() - rest.len() + skipped.len();
                let at = text.start.as_ref().map_or_else(
                    || node.at.clone(),
                    |start| start.after(text.text.get(..before).unwrap_or_default()),
                );
                names.push(Located { value: name.into(), at });
                rest = after;
            }
        }
        Some(names)
    }

    /// Texts with a remark each, in order: a list of `name` and `name: remark`, or one text with
    /// such a line for each.
    pub(crate) fn remarked(&mut self, key: &'static str) -> Option<Vec<RemarkedName>> {
        let value = self.take(key)?;
        let problems = self.problems;
        let wrong = |at: &Spot| {
            let message = format!("`{key}` must be a list of `NAME` and `NAME: NOTE`");
            let help = format!("write below `{key}:`, indented: - NAME: NOTE");
            problems.push(Diagnostic::error(at, message).help(help));
        };
        let nodes = match value.value {
            Node::List(items) => items,
            Node::Text(text) => {
                let lines = text.text.lines().map(str::trim).filter(|line| !line.is_empty());
                let remarked = lines.map(|line| match line.split_once(": ") {
                    Some((name, remark)) => RemarkedName::new(name, remark, value.at.clone()),
                    None => RemarkedName::new(line.trim_end_matches(':'), "", value.at.clone()),
                });
                return Some(remarked.collect());
            }
            _ => {
                wrong(&value.at);
                return None;
            }
        };
        let mut remarked = Vec::with_capacity(nodes.len());
        for node in nodes {
            let one = match &node.value {
                Node::Text(name) => Some((name, "", &node.at)),
                Node::Map(entries) => match entries.as_slice() {
                    [(name, remark)] => match (&name.value, &remark.value) {
                        (Node::Text(text), Node::Text(remark)) => {
                            Some((text, &*remark.text, &name.at))
                        }
                        _ => None,
                    },
                    _ => None,
                },
                _ => None,
            };
            match one.filter(|(name, ..)| !name.text.trim().is_empty()) {
                Some((name, remark, at)) => {
                    remarked.push(RemarkedName::new(&name.text, remark, at.clone()));
                }
                None => wrong(&node.at),
            }
        }
        Some(remarked)
    }

    /// The mapping under a key; an empty value is an empty mapping.
    pub(crate) fn map(&mut self, key: &'static str) -> Option<Self> {
        let value = self.take(key)?;
        if matches!(&value.value, Node::Text(text) if text.text.is_empty()) {
            return None;
        }
        Self::of(value, &format!("`{key}`"), self.problems)
    }

    /// The remaining keys, each with a similar known one.
    pub(crate) fn unknown(self) -> impl Iterator<Item = (Located<Arc<str>>, Option<&'static str>)> {
        let known = self.known;
        self.entries.into_iter().map(move |(key, _)| {
            let near = suggest::nearest(&key.value, known.iter().copied());
            (key, near)
        })
    }
}
