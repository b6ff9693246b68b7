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

use std::sync::Arc;

use crate::{
    catalog::LintCatalog,
    report::{
        Findings,
        Severity::{self, Error, Warning},
    },
};

type Check = dyn Fn(&LintCatalog<'_>, &mut Findings) + Send + Sync;

/// One check of a catalog.
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
        let severity = Error;
        Self { id: id.into(), about: about.into(), severity, check: Arc::new(check) }
    }

    /// Declares that the rule reports warnings and no errors.
    #[must_use]
    pub fn warns(mut self) -> Self {
        self.severity = Warning;
        self
    }

    /// The id by which the rule is skipped.
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

toolcrib_core::__internal::debug_fields!(Rule, rule, rule.id);

/// The errors about texts that attack a model.
pub(crate) const ATTACKS: [&str; 5] = [
    "hidden-characters",
    "hidden-markup",
    "padded-text",
    "instruction-to-model",
    "encoded-instruction",
];

/// The errors about texts that definitions of other parties are cleaned of.
pub(crate) const CLEANED: [&str; 2] = ["hidden-characters", "padded-text"];

/// A rule of this crate: its id, its highest severity, what it reports, and its check.
type BuiltIn = (&'static str, Severity, &'static str, fn(&LintCatalog<'_>, &mut Findings));

/// All rules, in the order of `docs/lint.md`.
const RULES: [BuiltIn; 25] = [
    ("duplicate-name", Error, "Two tools with the same name", names::duplicate),
    ("invalid-name", Error, "A name that model APIs refuse", names::invalid),
    ("confusable-name", Warning, "Names that are easily mixed up", names::confusable),
    ("missing-description", Error, "No description", descriptions::missing),
    ("vague-description", Warning, "A description without information", descriptions::vague),
    ("long-description", Warning, "A description that is refused or truncated", descriptions::long),
    (
        "says-what-not-when",
        Warning,
        "A description that does not say when to use the tool",
        descriptions::what_not_when,
    ),
    ("confusable-description", Warning, "Descriptions with the same meaning", similar::confusable),
    (
        "cannot-be-found",
        Warning,
        "A tool that a search in other words than its name does not find",
        findable::cannot_be_found,
    ),
    (
        "undescribed-parameter",
        Warning,
        "A parameter without a description",
        parameters::undescribed,
    ),
    (
        "unclear-default",
        Warning,
        "An optional parameter without a documented default",
        parameters::unclear_default,
    ),
    ("enum-in-prose", Warning, "Values that are listed in prose only", prose_enums::in_prose),
    ("invalid-schema", Error, "A schema that cannot be enforced", schemas::invalid),
    (
        "unknown-required",
        Error,
        "A required parameter that is not described",
        schemas::unknown_required,
    ),
    ("large-tool", Warning, "A tool that costs much in every request", sizes::tool),
    ("large-catalog", Warning, "All tools cost much in every request", sizes::catalog),
    ("hidden-characters", Error, "Invisible characters", hidden_text::characters),
    ("hidden-markup", Error, "Invisible markup", hidden_text::markup),
    ("padded-text", Error, "Text pushed out of sight by blanks", hidden_text::padding),
    ("instruction-to-model", Error, "Text that manipulates the model", instructions::to_model),
    (
        "encoded-instruction",
        Error,
        "Base64 or hexadecimal digits of a text that manipulates the model",
        encoded::instruction,
    ),
    (
        "claims-precedence",
        Warning,
        "Text that discourages the use of other tools",
        instructions::precedence,
    ),
    (
        "speaks-of-foreign-tool",
        Warning,
        "Text about a tool of another source",
        instructions::foreign_tool,
    ),
    ("source-failed", Error, "A source that could not be listed", sources::failed),
    ("endless-ttl", Warning, "A remote list that never expires", sources::endless_ttl),
];

/// The rules of this crate.
pub(crate) fn all() -> Vec<Rule> {
    let rule = |(id, severity, about, check)| Rule { severity, ..Rule::new(id, about, check) };
    RULES.map(rule).into()
}
