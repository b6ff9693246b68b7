//! The body of a call.

use serde_json::{Map, Value};

use toolcrib_config::pointer_step;

use super::check::Check;
use crate::{
    arguments::text,
    findings::Field,
    template::{Part, Template},
};

/// How deep a body may nest; no JSON text that is parsed with the usual bound is deeper.
const DEEPEST_BODY: usize = 128;

/// JSON with places.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BodyTemplate {
    /// Without a place.
    Fixed(Value),
    /// The argument itself.
    Argument(String),
    Text(Template),
    Items(Vec<Self>),
    Members(Vec<(String, Self)>),
}

impl BodyTemplate {
    /// Reads a body; none where something is wrong with it, which is reported.
    pub(super) fn read(body: &Value, check: &mut Check<'_>) -> Option<Self> {
        Self::read_at(body, "", DEEPEST_BODY, check)
    }

    /// Reads the part of a body at a JSON pointer, with a limit on its depth.
    fn read_at(body: &Value, at: &str, levels: usize, check: &mut Check<'_>) -> Option<Self> {
        let label = match at {
            "" => "the body".to_owned(),
            at => format!("the body at `{at}`"),
        };
        let field = Field::new(&label, format!("/body{at}"));
        let inside = |key: &str, value: &Value, check: &mut Check<'_>| {
            let at = format!("{at}/{}", pointer_step(key));
            Self::read_at(value, &at, levels - 1, check)
        };
        // All of it is read, so that all that is wrong is reported.
        match body {
            Value::Array(_) | Value::Object(_) if levels == 0 => {
                check.wrong(&field, None, format!("it nests deeper than {DEEPEST_BODY} levels"));
                None
            }
            Value::Array(items) => {
                let numbered = items.iter().enumerate();
                let read: Vec<_> =
                    numbered.map(|(n, item)| inside(&n.to_string(), item, check)).collect();
                read.into_iter().collect::<Option<_>>().map(Self::Items)
            }
            Value::Object(members) => {
                let mut read = Vec::with_capacity(members.len());
                for (key, value) in members {
                    let key_template = check.template(&field, key, Template::parse);
                    let name = key_template.as_ref().and_then(literal);
                    if key_template.is_some() && name.is_none() {
                        let field = Field::new(&label, format!("/body{at}/{}", pointer_step(key)));
                        let message = format!(
                            "its key `{key}` contains a place, which only a value may; write it out, \
                             with `{{{{` and `}}}}` for braces"
                        );
                        check.wrong(&field, None, message);
                    }
                    read.push(name.zip(inside(key, value, check)));
                }
                read.into_iter().collect::<Option<_>>().map(Self::Members)
            }
            Value::String(text) => {
                let template = check.template(&field, text, Template::parse)?;
                Some(match template.parts() {
                    [Part::Param { name, .. }] => Self::Argument(name.clone()),
                    _ => match literal(&template) {
                        Some(text) => Self::Fixed(text.into()),
                        None => Self::Text(template),
                    },
                })
            }
            fixed => Some(Self::Fixed(fixed.clone())),
        }
    }

    /// The body of a call; none where all of it is an argument that is absent.
    pub(super) fn fill(&self, args: &Value) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Argument(name) => args.get(name).cloned(),
            Self::Text(template) => {
                let mut filled = String::new();
                for part in template.parts() {
                    match part {
                        Part::Literal(literal) => filled.push_str(literal),
                        Part::Param { name, .. } | Part::Secret { name, .. } => {
                            filled.push_str(&text(args, name)?);
                        }
                    }
                }
                Some(filled.into())
            }
            Self::Items(items) => {
                Some(items.iter().filter_map(|item| item.fill(args)).collect::<Vec<_>>().into())
            }
            Self::Members(members) => {
                let filled = members
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), value.fill(args)?)))
                    .collect::<Map<_, _>>();
                Some(filled.into())
            }
        }
    }
}

/// The text of a template that has no place.
fn literal(template: &Template) -> Option<String> {
    match template.parts() {
        [] => Some(String::new()),
        [Part::Literal(text)] => Some(text.clone()),
        _ => None,
    }
}
