//! Texts with places that a call's arguments fill: `--title={title}`.
//!
//! `{name}` is a parameter, `{{` and `}}` are braces. Where secrets are allowed, `{secret:NAME}` is
//! one, and a text that is `secret:NAME` and nothing else is the same reference. A value is put in
//! once and never read again, so braces in it mean nothing.

/// The prefix of a reference to a secret.
pub const SECRET: &str = "secret:";

/// A text with its places, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

/// A piece of a template. Offsets are bytes in the text as written, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text that stays as it is; never empty, and never beside another one.
    Literal(String),
    /// The place of an argument.
    Param {
        /// The parameter.
        name: String,
        /// Where its name begins.
        offset: usize,
    },
    /// The place of a secret.
    Secret {
        /// The secret.
        name: String,
        /// Where its name begins.
        offset: usize,
    },
}

impl Template {
    /// Reads a text that must not refer to secrets.
    ///
    /// # Errors
    /// The first place that cannot be read, or the reference to a secret.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        if whole_secret(text).is_some() {
            return Err(TemplateError::SecretNotHere { offset: 0 });
        }
        Self::read(text, false)
    }

    /// Reads a text that may refer to secrets.
    ///
    /// # Errors
    /// The first place that cannot be read.
    pub(crate) fn parse_with_secrets(text: &str) -> Result<Self, TemplateError> {
        if let Some(name) = whole_secret(text) {
            let part = Part::Secret { name: name.to_owned(), offset: SECRET.len() };
            return Ok(Self { parts: vec![part] });
        }
        Self::read(text, true)
    }

    fn read(text: &str, secrets: bool) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from_brace) = rest.split_at(at);
            check_literal(before, text.len() - rest.len(), secrets)?;
            literal.push_str(before);
            let offset = text.len() - from_brace.len();
            rest = if let Some(after) = from_brace.strip_prefix("{{") {
                literal.push('{');
                after
            } else if let Some(after) = from_brace.strip_prefix("}}") {
                literal.push('}');
                after
            } else if let Some(inside) = from_brace.strip_prefix('{') {
                let (name, after) = match inside.split_once('}') {
                    Some((name, after)) if !name.contains('{') => (name, after),
                    _ => return Err(TemplateError::Open { offset }),
                };
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(place(name, offset + 1, secrets)?);
                after
            } else {
                return Err(TemplateError::StrayBrace { offset });
            };
        }
        check_literal(rest, text.len() - rest.len(), secrets)?;
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { parts })
    }

    /// Its pieces, in order; none for an empty text.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parameters with a place in it, and the offsets of their names, once per
    /// occurrence.
    pub(crate) fn params(&self) -> impl Iterator<Item = (&str, usize)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Param { name, offset } => Some((name.as_str(), *offset)),
            Part::Literal(_) | Part::Secret { .. } => None,
        })
    }

    /// The secrets with a place in it.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Secret { name, .. } => Some(name.as_str()),
            Part::Literal(_) | Part::Param { .. } => None,
        })
    }
}

fn place(name: &str, offset: usize, secrets: bool) -> Result<Part, TemplateError> {
    match name.strip_prefix(SECRET) {
        Some(_) if !secrets => Err(TemplateError::SecretNotHere { offset }),
        Some(secret) if is_secret_name(secret) => {
            Ok(Part::Secret { name: secret.to_owned(), offset: offset + SECRET.len() })
        }
        Some(_) => Err(TemplateError::SecretName { offset: offset + SECRET.len() }),
        None if name.is_empty() => Err(TemplateError::NoName { offset: offset - 1 }),
        None => Ok(Part::Param { name: name.to_owned(), offset }),
    }
}

/// An author of `Bearer secret:TOKEN` means the secret, and would send the word.
fn check_literal(literal: &str, offset: usize, secrets: bool) -> Result<(), TemplateError> {
    match literal.find(SECRET) {
        Some(at) if secrets => Err(TemplateError::BareSecret { offset: offset + at }),
        _ => Ok(()),
    }
}

fn whole_secret(text: &str) -> Option<&str> {
    text.strip_prefix(SECRET).filter(|name| is_secret_name(name))
}

/// Whether a text can be the name of a secret.
pub fn is_secret_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// A text with places for values that cannot be read. Offsets are bytes in the text, from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// A `{` begins a place that does not end.
    #[error("`{{` has no `}}`; write `{{parameter}}`, or `{{{{` for the brace itself")]
    Open {
        /// The offset of the brace.
        offset: usize,
    },
    /// A `}` ends nothing.
    #[error("`}}` ends no `{{parameter}}`; write `}}}}` for the brace itself")]
    StrayBrace {
        /// Its offset.
        offset: usize,
    },
    /// `{}`.
    #[error(
        "`{{}}` names no parameter; write `{{parameter}}`, or `{{{{}}}}` for the braces themselves"
    )]
    NoName {
        /// Its offset.
        offset: usize,
    },
    /// A secret where others could read it.
    #[error(
        "no secret is allowed here, where other programs and logs can read it; give it in the \
         environment or in a header"
    )]
    SecretNotHere {
        /// Its offset.
        offset: usize,
    },
    /// A reference to no secret.
    #[error("a secret's name has letters, digits, `_`, `-` and `.`; write `{{secret:NAME}}`")]
    SecretName {
        /// The offset of the expected name.
        offset: usize,
    },
    /// `secret:` in the midst of text, which would be sent as that word.
    #[error("a secret inside a text is written `{{secret:NAME}}`")]
    BareSecret {
        /// Its offset.
        offset: usize,
    },
}

impl TemplateError {
    /// The byte in the text where it is wrong, from 0.
    pub(crate) fn offset(&self) -> usize {
        match self {
            Self::Open { offset }
            | Self::StrayBrace { offset }
            | Self::NoName { offset }
            | Self::SecretNotHere { offset }
            | Self::SecretName { offset }
            | Self::BareSecret { offset } => *offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Part {
        Part::Literal(text.to_owned())
    }

    fn param(name: &str, offset: usize) -> Part {
        Part::Param { name: name.to_owned(), offset }
    }

    fn secret(name: &str, offset: usize) -> Part {
        Part::Secret { name: name.to_owned(), offset }
    }

    fn parts(text: &str) -> Vec<Part> {
        Template::parse(text).unwrap().parts
    }

    #[test]
    fn a_text_is_read_into_its_pieces() {
        assert_eq!(parts(""), []);
        assert_eq!(parts("plain"), [literal("plain")]);
        assert_eq!(parts("{a}"), [param("a", 1)]);
        assert_eq!(parts("{a}{b}"), [param("a", 1), param("b", 4)]);
        assert_eq!(parts("--é={a}!"), [literal("--é="), param("a", 6), literal("!")]);
        assert_eq!(parts("{{{a}}}"), [literal("{"), param("a", 3), literal("}")]);
        assert_eq!(parts("{{a}}"), [literal("{a}")]);
        assert_eq!(parts("a secret: X"), [literal("a secret: X")]);
    }

    #[test]
    fn secrets_stand_where_they_may() {
        let read = |text| Template::parse_with_secrets(text).map(|template| template.parts);
        assert_eq!(read("secret:TOKEN"), Ok(vec![secret("TOKEN", 7)]));
        assert_eq!(
            read("Bearer {secret:TOKEN}"),
            Ok(vec![literal("Bearer "), secret("TOKEN", 15)])
        );
        let template = Template::parse_with_secrets("{secret:A}{b}{secret:C}").unwrap();
        assert_eq!(template.secrets().collect::<Vec<_>>(), ["A", "C"]);
        assert_eq!(template.params().collect::<Vec<_>>(), [("b", 11)]);
        assert_eq!(read("{x}secret:T"), Err(TemplateError::BareSecret { offset: 3 }));
        assert_eq!(read("secret:"), Err(TemplateError::BareSecret { offset: 0 }));
        assert_eq!(read("secret:a b"), Err(TemplateError::BareSecret { offset: 0 }));
        assert_eq!(read("{secret:}"), Err(TemplateError::SecretName { offset: 8 }));
        let here = Template::parse("x{secret:T}");
        assert_eq!(here, Err(TemplateError::SecretNotHere { offset: 2 }));
        let whole = Template::parse("secret:T");
        assert_eq!(whole, Err(TemplateError::SecretNotHere { offset: 0 }));
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        let wrong = |text| Template::parse(text).unwrap_err();
        assert_eq!(wrong("ab{c"), TemplateError::Open { offset: 2 });
        assert_eq!(wrong("{a{b}"), TemplateError::Open { offset: 0 });
        assert_eq!(wrong("é}"), TemplateError::StrayBrace { offset: 2 });
        assert_eq!(wrong("x{}"), TemplateError::NoName { offset: 1 });
        assert_eq!(wrong("x{}").offset(), 1);
        assert!(wrong("x{}").to_string().contains("`{{}}`"), "{}", wrong("x{}"));
    }
}
