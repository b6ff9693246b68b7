//! Access rules of a connection: the answers to SQLite's authorizer.

use rusqlite::hooks::{AuthAction, Authorization};

use super::error::StatementError;

/// Virtual tables (full-text search, R-trees) use two of these themselves; the third lists tables.
const HARMLESS_PRAGMAS: [&str; 3] = ["data_version", "page_size", "table_list"];

/// The functions that a statement of a model may call. Left out are those that make large values of
/// nothing (`zeroblob`, `randomblob`), load code, or read the state of the connection.
const EXPLORING_FUNCTIONS: &str = "\
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling char coalesce \
    concat concat_ws cos cosh count cume_dist current_date current_time current_timestamp date \
    datetime degrees dense_rank exp first_value floor format glob group_concat hex highlight \
    if ifnull iif instr json json_array json_array_length json_error_position json_extract \
    json_group_array json_group_object json_object json_patch json_pretty json_quote json_type \
    json_valid jsonb jsonb_extract julianday lag last_value lead length like likelihood likely \
    ln log log10 log2 lower ltrim match max median min mod nth_value ntile nullif octet_length \
    percent_rank percentile percentile_cont percentile_disc pi pow power printf quote radians \
    random rank replace round row_number rtrim sign sin sinh snippet soundex sqrt strftime \
    string_agg substr substring sum tan tanh time timediff total trim trunc typeof unhex \
    unicode unixepoch unlikely upper";

/// The access of a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// To read, with statements that a model writes.
    Explore,
}

/// The source of a statement.
#[derive(Clone, Copy)]
pub(crate) enum Speaker {
    /// The host: begins and ends transactions.
    Host,
    /// The owner of a handle.
    Body(Access),
}

/// The state of the authorizer of one connection.
pub(crate) struct Guard {
    pub(crate) speaker: Speaker,
    /// Why the last statement was refused; SQLite itself only reports *not authorized*.
    pub(crate) refused: Option<StatementError>,
}

impl Guard {
    pub(crate) fn body(access: Access) -> Self {
        Self { speaker: Speaker::Body(access), refused: None }
    }

    /// The authorizer's answer; stores the reason of a refusal.
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

/// Why a body's statement may not do something; `None` permits it.
fn refusal(action: AuthAction<'_>, access: Access) -> Option<StatementError> {
    let reason = match action {
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            "the statements already run in one transaction; remove BEGIN, COMMIT, ROLLBACK and \
             SAVEPOINT"
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => {
            "a statement can use its own database only; remove ATTACH and DETACH"
        }
        AuthAction::Pragma { pragma_name, pragma_value: None }
            if HARMLESS_PRAGMAS.contains(&pragma_name) =>
        {
            return None;
        }
        AuthAction::Pragma { pragma_name, .. } => {
            return Some(StatementError::Refused(format!(
                "connections are shared between calls; remove PRAGMA {pragma_name}"
            )));
        }
        AuthAction::Read { table_name, .. }
            if table_name.eq_ignore_ascii_case("pragma_table_list") =>
        {
            return None;
        }
        // SQLite reports such a table as the statement spells it.
        AuthAction::Read { table_name, .. }
            if table_name.get(..7).is_some_and(|name| name.eq_ignore_ascii_case("pragma_")) =>
        {
            "pragmas cannot be read; remove the pragma_ function"
        }
        AuthAction::Function { function_name }
            if function_name.eq_ignore_ascii_case("load_extension") =>
        {
            "extensions are not loaded; remove load_extension"
        }
        AuthAction::Function { function_name } if access == Access::Explore => {
            let name = function_name.to_ascii_lowercase();
            return (!EXPLORING_FUNCTIONS.split(' ').any(|known| known == name)).then(|| {
                StatementError::Refused(format!("the function {name} is not available; remove it"))
            });
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
        AuthAction::Unknown { .. } => "SQLite requests an unknown action",
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Recursive => return None,
        _ => return (access != Access::Write).then_some(StatementError::Writes),
    };
    Some(StatementError::Refused(reason.to_owned()))
}
