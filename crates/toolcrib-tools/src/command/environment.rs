//! The environment of a program: what is declared, with its secrets, and what is passed on.

use std::{collections::BTreeSet, ffi::OsString};

use toolcrib_capabilities::process::inherited;
use toolcrib_core::{Secret, ToolContext, ToolError};

use crate::template::{Part, Template};

/// The environment of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Environment {
    /// Names, and values without places for arguments.
    pub(super) declared: Vec<(String, Template)>,
    /// None of these is declared.
    pub(super) passed_on: Vec<String>,
}

impl Environment {
    /// The secrets in it, each once.
    pub(super) fn secrets(&self) -> BTreeSet<&str> {
        self.declared.iter().flat_map(|(_, value)| value.secrets()).collect()
    }

    /// The environment of a call.
    pub(super) async fn fill(
        &self,
        cx: &ToolContext,
    ) -> Result<Vec<(OsString, OsString)>, ToolError> {
        let mut filled = inherited(self.passed_on.iter().map(String::as_str));
        for (name, template) in &self.declared {
            let mut value = String::new();
            for part in template.parts() {
                match part {
                    Part::Literal(literal) => value.push_str(literal),
                    Part::Secret { name: secret, .. } => {
                        value.push_str(passable(&cx.secret(secret).await?, name)?);
                    }
                    // No value was read with one.
                    Part::Param { .. } => {}
                }
            }
            filled.push((name.into(), value.into()));
        }
        Ok(filled)
    }
}

fn passable<'a>(secret: &'a Secret, variable: &str) -> Result<&'a str, ToolError> {
    let value = secret.expose();
    if value.contains('\0') {
        return Err(ToolError::not_set_up("a credential")
            .caused_by(format!("a secret of the variable `{variable}` contains a NUL byte")));
    }
    Ok(value)
}
