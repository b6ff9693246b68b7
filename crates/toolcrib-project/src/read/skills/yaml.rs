//! YAML as a small tree with positions: the subset that frontmatter needs.

use std::{convert::Infallible, sync::Arc};

use toolcrib_config::{
    Diagnostic, Located, Spot,
    yaml::{YamlError, YamlPart, YamlPlace, read_yaml},
};

/// The depth limit of frontmatter. It bounds the stack use of dropping a tree.
const DEEPEST: usize = 32;

/// A node.
#[derive(Debug)]
pub(crate) enum Node {
    /// A scalar of any type, as text; blank for `null`.
    Text(YamlText),
    /// A sequence.
    List(Vec<Located<Node>>),
    /// A mapping, in the order of the file.
    Map(Vec<(Located<Node>, Located<Node>)>),
    /// A reference to another node. Frontmatter does not need aliases; they are not resolved.
    Alias,
}

/// A scalar.
#[derive(Debug)]
pub(crate) struct YamlText {
    pub(crate) text: Arc<str>,
    /// The position of its first character, if the file contains the text literally on one line.
    pub(crate) start: Option<Spot>,
}

/// Parses the first document of a text that begins at a given line of a file. `None` if it is
/// empty.
pub(crate) fn parse(
    yaml: &str,
    file: &Arc<str>,
    first_line: usize,
) -> Result<Option<Located<Node>>, Diagnostic> {
    let spot = |at: YamlPlace| Spot {
        file: Arc::clone(file),
        line: first_line.saturating_sub(1) + at.line,
        column: at.column,
    };
    let node = |part: YamlPart<'_, Located<Node>>, at| {
        let at = spot(at);
        let value = match part {
            YamlPart::Scalar(scalar) => {
                let start =
                    scalar.quotes.map(|quotes| Spot { column: at.column + quotes, ..at.clone() });
                let is_null = scalar.is_null();
                let text = if is_null { Arc::default() } else { Arc::from(scalar.text) };
                Node::Text(YamlText { text, start })
            }
            YamlPart::List(items) => Node::List(items),
            YamlPart::Map(entries) => Node::Map(entries),
            YamlPart::Alias(_) => Node::Alias,
        };
        Ok::<_, Infallible>(Located { value, at })
    };
    read_yaml(yaml, DEEPEST, node).map_err(|error| match error {
        YamlError::Syntax { at, info } => {
            Diagnostic::error(&spot(at), format!("this is not YAML: {info}"))
                .help("a text with `: ` or ` #` in it must be quoted")
        }
        YamlError::Depth(at) => {
            let message = format!("frontmatter may not nest deeper than {DEEPEST} levels");
            Diagnostic::error(&spot(at), message)
        }
        YamlError::Part(never) => match never {},
    })
}
