//! `include` and `exclude`: the operations that become tools.

use toolcrib_core::Glob;

use super::document::Outline;

/// A pattern for operations: `tag:NAME`, a path `/v1/*`, a method `GET`, both `GET /v1/*`, or an
/// `operationId`. `*` matches any characters, `?` matches one.
#[derive(Debug, Clone)]
pub(super) struct Selector(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Tag(Glob),
    Path { method: Option<String>, path: Glob },
    Method(String),
    Id(Glob),
}

const METHODS: [&str; 7] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH"];

impl Selector {
    /// Reads a pattern; every text is one.
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim();
        let method = |word: &str| METHODS.contains(&word).then(|| word.to_owned());
        Self(if let Some(tag) = text.strip_prefix("tag:") {
            Kind::Tag(Glob::new(tag.trim()))
        } else if text.starts_with('/') {
            Kind::Path { method: None, path: Glob::new(text) }
        } else if let Some(method) = method(text) {
            Kind::Method(method)
        } else if let Some((word, path)) = text.split_once(' ')
            && let Some(method) = method(word)
        {
            Kind::Path { method: Some(method), path: Glob::new(path.trim()) }
        } else {
            Kind::Id(Glob::new(text))
        })
    }

    /// Whether an operation, with the name of its tool, matches.
    pub(super) fn matches(&self, operation: &Outline<'_>, name: &str) -> bool {
        match &self.0 {
            Kind::Tag(tag) => operation.tags.iter().any(|one| tag.matches(one)),
            Kind::Path { method, path } => {
                let is_method = method.as_ref().is_none_or(|method| operation.method == **method);
                is_method && path.matches(operation.path)
            }
            Kind::Method(method) => operation.method == **method,
            Kind::Id(id) => operation.id.is_some_and(|one| id.matches(one)) || id.matches(name),
        }
    }
}
