//! Who speaks on a connection, and what SQLite's authorizer answers them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::hooks::{AuthAction, Authorization};

use super::error::StatementError;

/// Virtual tables (full-text search, R-trees) ask these on their own account.
const HARMLESS_PRAGMAS: [&str; 2] = ["data_version", "page_size"];

/// How far a handle reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Whose statements the authorizer is asked about.
#[derive(Clone, Copy)]
pub(crate) enum Speaker {
    /// Ours: beginning and ending transactions.
    Host,
    /// Those of whoever holds a handle.
    Body(Access),
}

/// What the authorizer of one connection goes by.
pub(crate) struct Guard {
    pub(crate) speaker: Speaker,
    /// Why the last statement was refused; SQLite itself only says *not authorized*.
    pub(crate) refused: Option<StatementError>,
}

impl Guard {
    pub(crate) fn body(access: Access) -> Self {
        Self { speaker: Speaker::Body(access), refused: None }
    }

    /// The authorizer's answer; keeps why it is no.
    pub(crate) fn judge(&mut self, action: AuthAction<'_>) -> Authorization {
        let refused = match self.speaker {
            Speaker::Host => None,
            Speaker::Body(access) => refusal(action, access),
        };
        match refused {
            None => Authorization::Allow,
            Some(refused) => {
                self.refused = Some(refused);
                Authorization::Deny
            }
        }
    }
}

/// Why a body's statement may not do something; `None` lets it through.
fn refusal(action: AuthAction<'_>, access: Access) -> Option<StatementError> {
    let reason = match action {
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            "the statements run in one transaction already; leave BEGIN, COMMIT, ROLLBACK and \
             SAVEPOINT out"
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => {
            "a statement reaches its own database only; leave ATTACH and DETACH out"
        }
        AuthAction::Pragma { pragma_name, pragma_value: None }
            if HARMLESS_PRAGMAS.contains(&pragma_name) =>
        {
            return None;
        }
        AuthAction::Pragma { pragma_name, .. } => {
            return Some(StatementError::Refused(format!(
                "connections are shared between calls; leave PRAGMA {pragma_name} out"
            )));
        }
        AuthAction::Read { table_name, .. } if table_name.starts_with("pragma_") => {
            "pragmas cannot be read; leave the pragma_ function out"
        }
        AuthAction::Function { function_name: "load_extension" } => {
            "extensions are not loaded; leave load_extension out"
        }
        AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::DropTempIndex { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempTrigger { .. }
        | AuthAction::DropTempView { .. } => {
            "connections are shared between calls; use WITH instead of temporary objects"
        }
        AuthAction::Unknown { .. } => "SQLite asks for something unknown",
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Recursive => return None,
        _ => return (access == Access::Read).then_some(StatementError::Writes),
    };
    Some(StatementError::Refused(reason.to_owned()))
}

/// A panic elsewhere leaves nothing half done in what these mutexes hold.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
