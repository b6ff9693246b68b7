//! Tools with shared state and errors.

// snippet
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use toolcrib::prelude::*;

/// What the tools share. A pool of connections takes the place of the map, and is cloned like it.
#[derive(Clone)]
pub(crate) struct Shop(Arc<Mutex<BTreeMap<u32, u32>>>);

impl Shop {
    /// The orders of the example, with what was paid for them, in cents.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(BTreeMap::from([(1042, 12_900), (1043, 4_500)]))))
    }

    fn paid(&self, order: u32) -> Result<u32, NoSuchOrder> {
        let orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.get(&order).copied().ok_or(NoSuchOrder(order))
    }
}

/// An error of your own. `?` passes it on, and its text is what the model reads.
#[derive(Debug)]
pub(crate) struct NoSuchOrder(u32);

impl fmt::Display for NoSuchOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no order {}; ask the user for the number", self.0)
    }
}

impl std::error::Error for NoSuchOrder {}

/// What was paid for an order, in cents. Use it before you promise anything.
#[tool(read_only)]
pub(crate) async fn find_order(
    State(shop): State<Shop>,
    /// The order's number, as on the invoice.
    order: u32,
) -> Result<u32, NoSuchOrder> {
    shop.paid(order)
}

/// Pays the customer money back. Use it only when the user asks for a refund.
#[tool(destructive)]
pub(crate) async fn refund_order(
    State(shop): State<Shop>,
    order: u32,
    /// How much, in cents.
    cents: u32,
) -> Result<String, ToolError> {
    let paid = shop.paid(order)?;
    if cents > paid {
        return Err(err(format!("{cents} cents are more than the {paid} cents that were paid")));
    }
    Ok(format!("refunded {cents} of {paid} cents of order {order}"))
}
// end
