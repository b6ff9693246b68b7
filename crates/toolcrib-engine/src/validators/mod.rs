//! Schemas of arguments and of outputs: checked when a tool is first seen, compiled at its first
//! call, shared by content. Work that is not trivially cheap runs [`off`] the async workers.

mod memory;
pub(crate) mod off;

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{
    __internal::{CompiledSchema, check_uncompiled, must_be_compiled},
    Digest, Lanes, Tool,
};

use self::memory::Memory;

/// Schemas by the digest of their content, so that a repeated listing of a catalog costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Validators {
    checked: Memory<Result<(), Arc<str>>>,
    compiled: Memory<Result<Arc<CompiledSchema>, Arc<str>>>,
    lanes: Lanes,
}

/// A schema of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Arguments,
    Output,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Arguments, Self::Output];

    fn schema(self, tool: &Tool) -> Option<(&Value, Digest)> {
        match self {
            Self::Arguments => Some((tool.input_schema(), tool.schema_digest())),
            Self::Output => tool.output_schema().zip(tool.definition().output_digest()),
        }
    }

    /// The word for a part of a value.
    const fn part(self) -> &'static str {
        match self {
            Self::Arguments => "argument",
            Self::Output => "field",
        }
    }
}

impl Validators {
    /// Why a tool's schemas cannot be enforced, if so: such a tool must not be offered.
    ///
    /// Most schemas can be checked without compiling them, which takes several times as long as
    /// reading them and keeps some kilobytes for each.
    pub(crate) fn check(&self, tool: &Tool) -> Result<(), Arc<str>> {
        self.sound(tool, Side::Arguments)?;
        self.sound(tool, Side::Output)
            .map_err(|problem| format!("its output schema: {problem}").into())
    }

    fn sound(&self, tool: &Tool, side: Side) -> Result<(), Arc<str>> {
        let Some((schema, digest)) = side.schema(tool) else { return Ok(()) };
        let check = || match must_be_compiled(schema) {
            true => self.compiled(schema, digest).map(drop),
            false => check_uncompiled(schema),
        };
        self.checked.remember(digest, check, |_| 1)
    }

    /// The compiled schema; `None` if the tool declares none.
    pub(crate) fn of(
        &self,
        tool: &Tool,
        side: Side,
    ) -> Option<Result<Arc<CompiledSchema>, Arc<str>>> {
        side.schema(tool).map(|(schema, digest)| self.compiled(schema, digest))
    }

    fn compiled(&self, schema: &Value, digest: Digest) -> Result<Arc<CompiledSchema>, Arc<str>> {
        let compile = || CompiledSchema::new(schema).map(Arc::new);
        let weight =
            |made: &Result<Arc<CompiledSchema>, _>| made.as_ref().map_or(1, |one| one.weight());
        self.compiled.remember(digest, compile, weight)
    }
}
