//! Shows the person who approves a call what it would change.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::time::timeout;
use toolcrib_core::{CallPreview, Tool};

use super::{
    ClientWait,
    budget::Shares,
    call::{Batch, Call},
};

/// The time for a preview; a person waits for it.
const TIME: Duration = Duration::from_secs(2);

/// `None` if the tool shows nothing, or not in time.
pub(super) async fn preview(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &Call,
    args: &Value,
    shares: Shares,
) -> Option<CallPreview> {
    let (context, _reports) = batch.context(tool, call, shares, &Arc::<ClientWait>::default());
    let preview = AssertUnwindSafe(tool.preview(args.clone(), context)?).catch_unwind();
    let mut preview = timeout(TIME, preview).await.ok()?.ok()??;
    preview.difference = batch.engine.redactor.text(&preview.difference).into();
    Some(preview)
}
