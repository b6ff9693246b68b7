//! The headers of a call.

use std::{borrow::Cow, collections::HashMap};

use serde_json::Value;
use toolcrib_capabilities::http::{HeaderMap, HeaderName, HeaderValue};
use toolcrib_core::{Secret, ToolContext, ToolError};

use crate::{
    arguments::{refused, text},
    template::{Part, Template},
};

/// A header with places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderTemplate {
    pub(crate) name: HeaderName,
    pub(crate) value: Template,
}

/// A header of a call, before its secrets are inserted.
pub(crate) struct PartialHeader<'a> {
    name: &'a HeaderName,
    pieces: Vec<Piece<'a>>,
}

enum Piece<'a> {
    Text(Cow<'a, str>),
    Secret(&'a str),
}

/// Whether it is a valid header value.
pub(crate) fn fits(text: &str) -> bool {
    HeaderValue::from_bytes(text.as_bytes()).is_ok()
}

impl HeaderTemplate {
    /// The header of a call; none where an argument of it is absent.
    pub(crate) fn fill<'a>(
        &'a self,
        args: &'a Value,
    ) -> Result<Option<PartialHeader<'a>>, ToolError> {
        let mut pieces = Vec::new();
        for part in self.value.parts() {
            pieces.push(match part {
                Part::Literal(literal) => Piece::Text(Cow::Borrowed(literal)),
                Part::Secret { name, .. } => Piece::Secret(name),
                Part::Param { name, .. } => match text(args, name) {
                    None => return Ok(None),
                    Some(argument) if fits(&argument) => Piece::Text(argument),
                    Some(_) => {
                        return Err(refused(
                            name,
                            "contains a line end or another control character, which cannot be sent",
                        ));
                    }
                },
            });
        }
        Ok(Some(PartialHeader { name: &self.name, pieces }))
    }
}

/// Asks for the secrets that these headers need, each once, and puts the headers together.
pub(crate) async fn with_secrets(
    filled: &[PartialHeader<'_>],
    cx: &ToolContext,
) -> Result<HeaderMap, ToolError> {
    let mut known: HashMap<&str, Secret> = HashMap::new();
    let mut headers = HeaderMap::with_capacity(filled.len());
    for PartialHeader { name, pieces } in filled {
        let mut text = String::new();
        let mut sensitive = false;
        for piece in pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Secret(secret) => {
                    sensitive = true;
                    if !known.contains_key(secret) {
                        known.insert(secret, cx.secret(secret).await?);
                    }
                    text.push_str(known.get(secret).map_or("", Secret::expose));
                }
            }
        }
        // Only a secret can be wrong by now: all else has been looked at.
        let mut value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
            ToolError::not_set_up("a credential").caused_by(format!(
                "a secret of the header `{name}` contains a line end or another control character"
            ))
        })?;
        value.set_sensitive(sensitive);
        headers.insert((*name).clone(), value);
    }
    Ok(headers)
}
