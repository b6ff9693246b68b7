//! `[[tool]]` of the kind `clarify`.

use crate::{DeclaredKind, ExternalAccess};

/// The tool as read from a table. The kind has no own keys.
#[derive(Debug, Clone, Copy)]
pub struct DeclaredClarify;

impl DeclaredKind for DeclaredClarify {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        Vec::new()
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        Vec::new()
    }
}
