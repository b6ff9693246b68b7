//! The rules. Each has a stable id, by which it can be disabled.

mod descriptions;
mod encoded;
mod findable;
mod hidden_text;
mod instructions;
mod names;
mod parameters;
mod prose_enums;
mod schemas;
mod similar;
mod sizes;
mod sources;

use std::{fmt, sync::Arc};

use crate::{
    catalog::LintCatalog,
    report::{Findings, Severity},
};

type Check = dyn Fn(&LintCatalog<'_>, &mut Findings) + Send + Sync;

/// One check.
#[derive(Clone)]
pub struct Rule {
    id: Arc<str>,
    about: Arc<str>,
    severity: Severity,
    check: Arc<Check>,
}

impl Rule {
    /// Creates your own rule. The id is best in kebab case; `about` describes the check in one
    /// line.
    pub fn new(
        id: impl Into<Arc<str>>,
        about: impl Into<Arc<str>>,
        check: impl Fn(&LintCatalog<'_>, &mut Findings) + Send + Sync + 'static,
    ) -> Self {
        let severity = Severity::Error;
        Self { id: id.into(), about: about.into(), severity, check: Arc::new(check) }
    }

    /// Declares that the rule reports warnings and no errors.
    #[must_use]
    pub fn warns(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A description of the check, in one line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The highest severity that it may report: errors, unless it [declares](Self::warns) otherwise.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    pub(crate) fn check(&self, catalog: &LintCatalog<'_>, findings: &mut Findings) {
        (self.check)(catalog, findings);
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rule").field(&self.id).finish()
    }
}

/// The errors about texts that attack a model.
pub(crate) const ATTACKS: [&str; 5] = [
    "hidden-characters",
    "hidden-markup",
    "padded-text",
    "instruction-to-model",
    "encoded-instruction",
];

/// Those about texts that definitions of other parties are cleaned of.
pub(crate) const CLEANED: [&str; 2] = ["hidden-characters", "padded-text"];

/// The warnings about texts that steer a model to or from a tool. They concern the project whoever
/// worded them.
pub(crate) const STEERS: [&str; 2] = ["claims-precedence", "speaks-of-foreign-tool"];

/// All rules, in the order of `docs/lint.md`.
pub(crate) fn all() -> Vec<Rule> {
    vec![
        Rule::new("duplicate-name", "Two tools with the same name", names::duplicate),
        Rule::new("invalid-name", "A name that model APIs refuse", names::invalid),
        Rule::new("confusable-name", "Names that are easily mixed up", names::confusable).warns(),
        Rule::new("missing-description", "No description", descriptions::missing),
        Rule::new("vague-description", "A description without information", descriptions::vague)
            .warns(),
        Rule::new(
            "long-description",
            "A description that is refused or truncated",
            descriptions::long,
        )
        .warns(),
        Rule::new(
            "says-what-not-when",
            "A description that does not say when to use the tool",
            descriptions::what_not_when,
        )
        .warns(),
        Rule::new(
            "confusable-description",
            "Descriptions with the same meaning",
            similar::confusable,
        )
        .warns(),
        Rule::new(
            "cannot-be-found",
            "A tool that a search in other words than its name does not find",
            findable::cannot_be_found,
        )
        .warns(),
        Rule::new(
            "undescribed-parameter",
            "A parameter without a description",
            parameters::undescribed,
        )
        .warns(),
        Rule::new(
            "unclear-default",
            "An optional parameter without a documented default",
            parameters::unclear_default,
        )
        .warns(),
        Rule::new("enum-in-prose", "Values that are listed in prose only", prose_enums::in_prose)
            .warns(),
        Rule::new("invalid-schema", "A schema that cannot be enforced", schemas::invalid),
        Rule::new(
            "unknown-required",
            "A required parameter that is not described",
            schemas::unknown_required,
        ),
        Rule::new("large-tool", "A tool that costs much in every request", sizes::tool).warns(),
        Rule::new("large-catalog", "All tools cost much in every request", sizes::catalog).warns(),
        Rule::new("hidden-characters", "Invisible characters", hidden_text::characters),
        Rule::new("hidden-markup", "Invisible markup", hidden_text::markup),
        Rule::new("padded-text", "Text pushed out of sight by blanks", hidden_text::padding),
        Rule::new(
            "instruction-to-model",
            "Text that manipulates the model",
            instructions::to_model,
        ),
        Rule::new(
            "encoded-instruction",
            "Base64 or hexadecimal digits of a text that manipulates the model",
            encoded::instruction,
        ),
        Rule::new(
            "claims-precedence",
            "Text that discourages the use of other tools",
            instructions::precedence,
        )
        .warns(),
        Rule::new(
            "speaks-of-foreign-tool",
            "Text about a tool of another source",
            instructions::foreign_tool,
        )
        .warns(),
        Rule::new("source-failed", "A source that could not be listed", sources::failed),
        Rule::new("endless-ttl", "A remote list that never expires", sources::endless_ttl).warns(),
    ]
}
