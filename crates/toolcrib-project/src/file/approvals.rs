//! `[approvals]`: how calls wait for approval.

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Located, Table};

use super::secrets::secret_reference;

/// `[approvals]`.
#[derive(Debug, Default)]
pub(crate) struct ApprovalsSection {
    /// Whether the project is refused where approvals are advisory; with the place of the key.
    pub(crate) is_strict: Option<Located<bool>>,
    pub(crate) expire_after: Option<Duration>,
    /// The secret that the key is made of, and the secret with the URL of the marks.
    pub(crate) shared: Option<(SecretName, SecretName)>,
}

/// The name of a secret, with the place of the reference to it.
pub(crate) type SecretName = Located<Arc<str>>;

impl ApprovalsSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let is_strict = table
            .value("mode")
            .and_then(|mode| mode.word(&[("advisory", false), ("strict", true)]));
        let shared = match (table.value("key"), table.value("marks")) {
            (Some(key), Some(marks)) => {
                secret_reference(&key, "key").zip(secret_reference(&marks, "marks"))
            }
            (Some(one), None) | (None, Some(one)) => {
                let help = "write both `key` and `marks`, each as \"secret:NAME\"";
                one.refuse("a key that machines share requires marks that they share", help);
                None
            }
            (None, None) => None,
        };
        Self { is_strict, expire_after: table.age("expire_after"), shared }
    }
}
