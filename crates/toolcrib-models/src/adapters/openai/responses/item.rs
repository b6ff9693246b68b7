//! The fields of an item in an event.

use serde::de::MapAccess;

use super::super::super::lenient::{
    FieldValue, Fields, MaybeList, MaybeObject, MaybeText, TextOrObject,
};

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

impl<'de: 'a, 'a> Fields<'de> for Item<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "type" => self.kind = value.read()?,
            "id" => self.id = value.read()?,
            "call_id" => self.call_id = value.read()?,
            "name" => self.name = value.read()?,
            "arguments" => self.arguments = value.read()?,
            "phase" => self.phase = value.read()?,
            "execution" => self.execution = value.read()?,
            "summary" => self.summary = value.read()?,
            "content" => self.content = value.read()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fields<'de> for ItemPart<'a> {
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error> {
        match field {
            "type" => self.kind = value.read()?,
            "text" => self.text = value.read()?,
            "refusal" => self.refusal = value.read()?,
            _ => {}
        }
        Ok(())
    }
}
