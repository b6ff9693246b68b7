//! The items of an answer.

use std::ops::Range;

use serde_json::Value;

use super::{ITEMS, items::EachItem};
use crate::{
    kinds::kind::QueryRequest,
    page::{Answer, Items, Page},
};

/// Processes the items of one answer.
pub(super) struct ItemPager<F> {
    items: Items,
    limit: u64,
    page: Page,
    pub(super) range: Range<u64>,
    show: F,
    past: bool,
}

impl<F: Fn(u64, &Value) -> Option<String>> ItemPager<F> {
    pub(super) fn new(asked: &QueryRequest<'_>, limit: Option<u64>, show: F) -> Self {
        let limit = limit.unwrap_or(ITEMS);
        Self {
            items: Items::new(asked.page, limit),
            limit,
            page: asked.page,
            range: 0..u64::MAX,
            show,
            past: false,
        }
    }

    pub(super) fn skip(&mut self) {
        self.items.skip(1);
    }

    pub(super) fn answer(self) -> Answer {
        self.items.answer("items")
    }
}

impl<F: Fn(u64, &Value) -> Option<String>> EachItem for ItemPager<F> {
    fn restart(&mut self) {
        self.items = Items::new(self.page, self.limit);
        self.past = false;
    }

    fn wants(&mut self, at: u64) -> bool {
        self.past |= at >= self.range.end;
        at >= self.range.start && !self.past && !self.items.is_full()
    }

    fn item(&mut self, at: u64, item: &Value) {
        if let Some(shown) = (self.show)(at, item) {
            self.items.push(&shown);
        }
    }

    fn is_done(&self) -> bool {
        self.past || self.items.is_full()
    }
}
