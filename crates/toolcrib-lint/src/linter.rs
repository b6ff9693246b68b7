//! Selects and runs the rules.

use crate::{
    catalog::LintCatalog,
    report::{Findings, Report, Severity},
    rules::{self, Rule},
    tool::{LintTool, SourceFacts},
};

/// Default maximum number of tokens of all tools: a twentieth of a window of 200,000.
pub const DEFAULT_MAX_TOKENS: usize = 10_000;

/// Checks a catalog with all rules.
pub fn lint(tools: &[LintTool]) -> Report {
    Linter::new().lint(tools)
}

/// Checks catalogs with all rules or some, and with your own rules.
///
/// ```
/// use toolcrib_lint::{Finding, LintTool, Linter, Rule};
///
/// let no_drop = Rule::new("no-drop", "Nothing here may drop anything", |catalog, findings| {
///     for tool in catalog.tools().iter().filter(|tool| tool.tool().name.contains("drop")) {
///         let message = format!("{} drops something", tool.shown());
///         findings.push(Finding::error(message, "offer a tool that archives").of(tool));
///     }
/// });
/// let linter = Linter::new().rule(no_drop).allow("says-what-not-when")?;
/// let schema = serde_json::json!({ "type": "object", "properties": {} });
/// let report = linter.lint(&[LintTool::new(
///     "drop_table",
///     "Removes a table of the database together with all of its rows.",
///     schema,
/// )]);
/// assert_eq!(report.findings[0].rule, "no-drop");
/// assert_eq!(report.totals.errors, 1);
/// # Ok::<(), toolcrib_lint::UnknownRuleError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Linter {
    rules: Vec<Rule>,
    sources: Vec<SourceFacts>,
    max_tokens: usize,
}

impl Default for Linter {
    fn default() -> Self {
        Self::new()
    }
}

impl Linter {
    /// A linter with all rules and no known sources.
    pub fn new() -> Self {
        Self { rules: rules::all(), sources: Vec::new(), max_tokens: DEFAULT_MAX_TOKENS }
    }

    /// Adds a rule after the existing ones.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Disables the rule with that id.
    ///
    /// # Errors
    /// [`UnknownRuleError`] if no rule has it.
    pub fn allow(mut self, id: &str) -> Result<Self, UnknownRuleError> {
        let before = self.rules.len();
        self.rules.retain(|rule| rule.id() != id);
        if self.rules.len() == before {
            return Err(UnknownRuleError { id: id.to_owned() });
        }
        Ok(self)
    }

    /// Disables the rules that report [warnings only](Rule::warns).
    #[must_use]
    pub fn errors_only(mut self) -> Self {
        self.rules.retain(|rule| rule.severity() == Severity::Error);
        self
    }

    /// Keeps only the rules about texts that attack a model: for texts that are not tools, such as
    /// prompts, resources and instructions of a server. Their form is not checked.
    #[must_use]
    pub fn attacks_only(mut self) -> Self {
        self.rules.retain(|rule| rules::ATTACKS.contains(&rule.id()));
        self
    }

    /// Keeps only the rules about attacks that remain after [sanitizing](toolcrib_core::Tool::sanitized),
    /// which removes invisible characters and padding.
    #[must_use]
    pub fn lasting_attacks_only(mut self) -> Self {
        self.rules.retain(|rule| {
            rules::ATTACKS.contains(&rule.id()) && !rules::CLEANED.contains(&rule.id())
        });
        self
    }

    /// Adds facts about the sources of the tools.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = SourceFacts>) -> Self {
        self.sources.extend(sources);
        self
    }

    /// Sets the maximum number of tokens of all tools. Default: [`DEFAULT_MAX_TOKENS`].
    #[must_use]
    pub fn max_tokens(mut self, tokens: usize) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// The enabled rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Checks the tools of a catalog. Takes time proportional to its size, except with very many
    /// similar descriptions.
    pub fn lint(&self, tools: &[LintTool]) -> Report {
        let catalog = LintCatalog::new(tools, &self.sources, self.max_tokens);
        let mut findings = Findings::default();
        for rule in &self.rules {
            findings.begin(rule.id());
            rule.check(&catalog, &mut findings);
        }
        Report::new(&catalog, findings)
    }
}

/// No rule has that id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown rule {id:?}; `Linter::rules` lists all rules")]
pub struct UnknownRuleError {
    /// The id.
    pub id: String,
}
