//! Checks the tool's availability again: its requirements may have gone since the menu was
//! composed.

use toolcrib_core::{ErrorCode, Tool};

use super::call::Failure;

pub(super) fn available(tool: &Tool) -> Result<(), Failure> {
    tool.check_available().map_err(|reason| {
        let message = format!("the tool `{}` is not available now", tool.name());
        Failure::refused(ErrorCode::NotAvailable, message).caused_by(&*reason)
    })
}
