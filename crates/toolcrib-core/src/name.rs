//! Names that a model API accepts.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize};

/// The longest name of a tool, in characters.
pub const MAX_TOOL_NAME: usize = 64;

/// The name under which a model sees and calls a tool: `^[a-zA-Z0-9_-]{1,64}$`.
///
/// Checked once, here, because a model API refuses a whole request for one bad name. Cheap to
/// clone. Names are compared as they stand: `Refund` and `refund` are two tools.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidToolName`] says what is wrong with it.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidToolName> {
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
            Some(problem) => Err(InvalidToolName { name, problem }),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A tool's name that no model API would take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a tool name: {problem}; use 1 to {MAX_TOOL_NAME} of the characters a-z, A-Z, 0-9, `_` and `-`",
    name.escape_debug()
)]
pub struct InvalidToolName {
    /// The refused name.
    pub name: Arc<str>,
    problem: String,
}

impl InvalidToolName {
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

/// The id of a skill, compared as it stands. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SkillId(Arc<str>);

impl SkillId {
    /// Checks an id.
    ///
    /// # Errors
    /// [`BlankSkillId`] when it is empty or white space.
    pub fn new(id: impl Into<Arc<str>>) -> Result<Self, BlankSkillId> {
        let id = id.into();
        if id.trim().is_empty() { Err(BlankSkillId) } else { Ok(Self(id)) }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A skill's id that is empty or white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a skill must not be blank")]
pub struct BlankSkillId;

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
