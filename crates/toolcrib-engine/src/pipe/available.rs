//! Asks the tool once more whether it is available: since the menu was composed, what it needs may
//! have gone.

use toolcrib_core::{ErrorCode, Tool};

use super::Failure;

pub(super) fn available(tool: &Tool) -> Result<(), Failure> {
    tool.check_available().map_err(|reason| {
        let message = format!("the tool `{}` is not available now", tool.name());
        Failure::refused(ErrorCode::NotAvailable, message).caused_by(&*reason)
    })
}
