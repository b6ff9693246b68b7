//! A comparable form of a list.

use std::time::Duration;

use toolcrib_core::{
    Annotations, Capabilities, Catalog, Digest, Lifetime, OnCollision, Tool, ToolName,
};

/// The tools that a provider lists.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    offered: Vec<ToolShape>,
    withheld_by_provider: Vec<(ToolShape, String, String)>,
}

/// The declaration of a tool.
#[derive(Debug, Clone, PartialEq)]
struct ToolShape {
    name: ToolName,
    digest: Digest,
    toolset: Option<String>,
    annotations: Annotations,
    timeout: Option<Duration>,
    max_result_chars: Option<usize>,
    untrusted: bool,
    always_include: bool,
    on_collision: OnCollision,
    ephemeral: Option<Lifetime>,
    sequential: bool,
    capabilities: Capabilities,
}

impl ToolShape {
    fn of(tool: &Tool) -> Self {
        Self {
            name: tool.name().clone(),
            digest: tool.digest(),
            toolset: tool.toolset().map(str::to_owned),
            annotations: tool.annotations(),
            timeout: tool.timeout(),
            max_result_chars: tool.max_result_chars(),
            untrusted: tool.untrusted(),
            always_include: tool.always_include(),
            on_collision: tool.on_collision(),
            ephemeral: tool.ephemeral(),
            sequential: tool.sequential(),
            capabilities: tool.capabilities().clone(),
        }
    }
}

impl Shape {
    /// The form of a whole list.
    pub(super) fn of(catalog: &Catalog) -> Self {
        let withheld_by_provider = catalog.withheld_by_provider().iter().map(|held| {
            (ToolShape::of(&held.tool), held.gate.to_string(), held.reason.to_string())
        });
        Self {
            offered: catalog.offered().iter().map(ToolShape::of).collect(),
            withheld_by_provider: withheld_by_provider.collect(),
        }
    }

    /// The first difference as text; `None` if both are equal.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self == other {
            return None;
        }
        let names = |shape: &Self| {
            let names: Vec<&str> = shape.offered.iter().map(|tool| tool.name.as_str()).collect();
            names.join(", ")
        };
        let (before, after) = (names(self), names(other));
        if before != after {
            return Some(format!("it offered [{before}], then [{after}]"));
        }
        let changed = self.offered.iter().zip(&other.offered).find(|(a, b)| a != b);
        Some(match changed {
            Some((tool, _)) => format!("`{}` is declared differently the second time", tool.name),
            None => "it withholds other tools, or for other reasons, the second time".to_owned(),
        })
    }

    /// A name that is offered twice without `on_collision`.
    pub(super) fn offered_twice(&self) -> Option<&ToolName> {
        let clash = self.offered.iter().enumerate().find(|(at, tool)| {
            tool.on_collision == OnCollision::Fail
                && self.offered.iter().take(*at).any(|before| before.name == tool.name)
        });
        clash.map(|(_, tool)| &tool.name)
    }
}
