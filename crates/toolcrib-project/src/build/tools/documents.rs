//! The operations of a document as definitions of a third party: linted, cleaned and pinned like those
//! of a server.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_core::{ListOrder, MissingReason, Reason, RemoteDefinition, RemoteListing, Tool};
use toolcrib_engine::Redactor;
use toolcrib_tools::ThirdPartyDefinition;

use crate::{build::lint::definition_check, user::lock::Lock};

/// The pins and secrets with which definitions of documents are compared.
#[derive(Clone, Copy)]
pub(crate) struct ThirdParties<'a> {
    pub(crate) redactor: &'a Redactor,
    pub(crate) lock: &'a Lock,
    /// Whether the project may not act yet: then nothing is pinned.
    pub(crate) is_held: bool,
}

/// An operation as a definition.
struct Operation {
    tool: Tool,
    withheld: Option<Arc<str>>,
    target: Value,
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.tool.same(&other.tool)
    }
}

impl RemoteDefinition for Operation {
    fn name(&self) -> Option<&str> {
        Some(self.tool.name().as_str())
    }

    fn definition(&self) -> Value {
        json!({
            "description": self.tool.description(),
            "inputSchema": self.tool.input_schema(),
            "outputSchema": self.tool.output_schema(),
            "target": self.target,
        })
    }
}

impl ThirdParties<'_> {
    /// The tools of one document; those that are refused are never available, with the reason.
    pub(crate) fn tools(
        self,
        built: Vec<(ThirdPartyDefinition<'_>, Tool)>,
        at: &Spot,
        problems: &Problems,
    ) -> Vec<Tool> {
        let Some((first, _)) = built.first() else { return Vec::new() };
        let file = first.file.to_owned();
        let source: Arc<str> = format!("openapi:{file}").into();
        let check = definition_check(first.lint_allow, problems).unwrap_or_default();
        let mut check = check.with_redaction(Arc::new(self.redactor.clone()));
        if first.is_pinned && !self.is_held {
            check = check.with_pins(Arc::new(self.lock.clone()));
        }
        let operation = |(one, tool): (ThirdPartyDefinition<'_>, Tool)| Operation {
            withheld: one.withheld.map(Arc::from),
            target: one.target,
            tool,
        };
        let operations = built.into_iter().map(operation).collect();
        let listing = RemoteListing::new(
            operations,
            ListOrder::AsGiven,
            None,
            &source,
            Some(&check),
            |one| {
                let reason = |flaw| Reason::Definition(MissingReason::Invalid, flaw);
                Some((one.tool.clone(), one.withheld.clone().map(reason)))
            },
        );
        match listing {
            Ok(listing) => {
                let catalog = listing.catalog();
                let refused = catalog.withheld_by_provider().iter().map(|held| {
                    let of = match &held.reason {
                        Reason::Definition(of, _) => *of,
                        _ => MissingReason::Refused,
                    };
                    held.tool.refused(of, held.reason.to_string().into())
                });
                catalog.offered().iter().cloned().chain(refused).collect()
            }
            Err(reason) => {
                let message = format!("`{file}`: {reason}");
                problems.push(Diagnostic::error(at, message));
                Vec::new()
            }
        }
    }
}
