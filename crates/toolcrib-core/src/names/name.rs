//! Names that a model API accepts.

use std::{borrow::Borrow, convert::Infallible, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize};

/// The maximum length of a tool's name, in characters.
pub const MAX_TOOL_NAME: usize = 64;

/// The name of a tool for models: `^[a-zA-Z0-9_-]{1,64}$`.
///
/// Validated once, here, because a model API rejects a whole request for one invalid name. Cheap to
/// clone. Names are case-sensitive: `Refund` and `refund` are two tools.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Validates the name of a tool.
    ///
    /// # Errors
    /// [`InvalidToolNameError`] with the problem.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidToolNameError> {
        let name = name.into();
        let problem = if name.is_empty() {
            Some("it is empty".to_owned())
        } else if let Some(bad) =
            name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
        {
            Some(format!("it contains {bad:?}"))
        } else if name.len() > MAX_TOOL_NAME {
            Some(format!("it has {} characters", name.len()))
        } else {
            None
        };
        match problem {
            None => Ok(Self(name)),
            Some(problem) => Err(InvalidToolNameError { name, problem }),
        }
    }

    /// The name of a tool whose own name is invalid.
    pub(crate) fn placeholder() -> Self {
        Self("invalid_tool".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for ToolName {
    type Error = InvalidToolNameError;

    fn try_from(name: &str) -> Result<Self, InvalidToolNameError> {
        Self::new(name)
    }
}

impl From<Infallible> for InvalidToolNameError {
    /// A [`ToolName`] converts to itself.
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A tool's name that model APIs reject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a tool name: {problem}; use 1 to {MAX_TOOL_NAME} of the characters a-z, A-Z, 0-9, `_` and `-`",
    name.escape_debug()
)]
pub struct InvalidToolNameError {
    /// The refused name.
    pub name: Arc<str>,
    problem: String,
}

impl InvalidToolNameError {
    pub(crate) fn new(name: &str, problem: String) -> Self {
        Self { name: name.into(), problem }
    }
}

impl Deref for ToolName {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl PartialEq<str> for ToolName {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for ToolName {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

/// The id of a skill; case-sensitive. Cheap to clone. Texts convert: `"billing"` is accepted as an id. A
/// blank id activates no skill, and a list of skills refuses it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SkillId(Arc<str>);

impl SkillId {
    /// Validates the id of a skill.
    ///
    /// # Errors
    /// [`BlankSkillIdError`] if it is empty or white space.
    pub fn new(id: impl Into<Arc<str>>) -> Result<Self, BlankSkillIdError> {
        let id = id.into();
        if id.trim().is_empty() { Err(BlankSkillIdError) } else { Ok(Self(id)) }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! skill_id_from {
    ($($text:ty),*) => {$(
        impl From<$text> for SkillId {
            fn from(id: $text) -> Self {
                Self(id.into())
            }
        }
    )*};
}
skill_id_from!(&str, String, Arc<str>);

impl From<&SkillId> for SkillId {
    fn from(id: &SkillId) -> Self {
        id.clone()
    }
}

/// A skill's id that is empty or white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a skill must not be blank")]
pub struct BlankSkillIdError;

impl Deref for SkillId {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SkillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_name_is_named_with_what_is_wrong_and_what_to_use() {
        assert_eq!(
            ToolName::new("refund charge").unwrap_err().to_string(),
            "`refund charge` is not a tool name: it contains ' '; \
             use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`"
        );
        assert!(ToolName::new("").unwrap_err().to_string().contains("it is empty"));
        assert!(ToolName::new("x".repeat(65)).unwrap_err().to_string().contains("65 characters"));
        assert!(ToolName::new("réfund").is_err());
        assert_eq!(ToolName::new("x".repeat(64)).unwrap().len(), 64);
    }
}
