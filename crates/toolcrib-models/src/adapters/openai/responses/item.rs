//! The fields of an item in an event.

use super::super::super::lenient::{MaybeList, MaybeObject, MaybeText, TextOrObject, fields};

/// An item. None has all fields.
#[derive(Debug, Default)]
pub(super) struct Item<'a> {
    pub(super) kind: MaybeText<'a>,
    pub(super) id: MaybeText<'a>,
    pub(super) call_id: MaybeText<'a>,
    pub(super) name: MaybeText<'a>,
    pub(super) arguments: TextOrObject<'a>,
    pub(super) phase: MaybeText<'a>,
    /// Who makes a call of the tool search.
    pub(super) execution: MaybeText<'a>,
    pub(super) summary: MaybeList<MaybeObject<ItemPart<'a>>>,
    pub(super) content: MaybeList<MaybeObject<ItemPart<'a>>>,
}

/// A part of an item.
#[derive(Debug, Default)]
pub(super) struct ItemPart<'a> {
    pub(super) kind: MaybeText<'a>,
    pub(super) text: MaybeText<'a>,
    pub(super) refusal: MaybeText<'a>,
}

fields!(Item<'a> {
    "type" => kind,
    "id" => id,
    "call_id" => call_id,
    "name" => name,
    "arguments" => arguments,
    "phase" => phase,
    "execution" => execution,
    "summary" => summary,
    "content" => content,
});

fields!(ItemPart<'a> {
    "type" => kind,
    "text" => text,
    "refusal" => refusal,
});
