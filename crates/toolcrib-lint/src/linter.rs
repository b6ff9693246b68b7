//! Which rules are checked, and with what.

use crate::{
    catalogue::Catalogue,
    report::{Findings, Report},
    rules::{self, Rule},
    tool::{LintTool, SourceFacts},
};

/// How many tokens all tools may have before it is a finding, if nothing else is said: a twentieth of
/// a window of 200,000.
pub const DEFAULT_MAX_TOKENS: usize = 10_000;

/// Looks over a catalogue with all rules.
pub fn lint(tools: &[LintTool]) -> Report {
    Linter::new().lint(tools)
}

/// Looks over catalogues, with all rules or some, and with those of one's own.
///
/// ```
/// use toolcrib_lint::{Finding, LintTool, Linter, Rule};
///
/// let no_drop = Rule::new("no-drop", "Nothing here may drop anything", |catalogue, findings| {
///     for tool in catalogue.tools().iter().filter(|tool| tool.tool().name.contains("drop")) {
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
/// # Ok::<(), toolcrib_lint::UnknownRule>(())
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
    /// With all rules and nothing known of sources.
    pub fn new() -> Self {
        Self { rules: rules::all(), sources: Vec::new(), max_tokens: DEFAULT_MAX_TOKENS }
    }

    /// Adds a rule behind those that are there.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Does without the rule of that id.
    ///
    /// # Errors
    /// [`UnknownRule`] when there is none.
    pub fn allow(mut self, id: &str) -> Result<Self, UnknownRule> {
        let before = self.rules.len();
        self.rules.retain(|rule| rule.id() != id);
        if self.rules.len() == before {
            return Err(UnknownRule { id: id.to_owned() });
        }
        Ok(self)
    }

    /// What is known of the sources that the tools come from.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = SourceFacts>) -> Self {
        self.sources.extend(sources);
        self
    }

    /// How many tokens all tools may have. Default: [`DEFAULT_MAX_TOKENS`].
    #[must_use]
    pub fn max_tokens(mut self, tokens: usize) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// The rules that are checked, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Looks over a catalogue. Takes time in proportion to its size, but where very many
    /// descriptions are alike.
    pub fn lint(&self, tools: &[LintTool]) -> Report {
        let catalogue = Catalogue::new(tools, &self.sources, self.max_tokens);
        let mut findings = Findings::default();
        for rule in &self.rules {
            findings.begin(rule.id());
            rule.check(&catalogue, &mut findings);
        }
        Report::new(&catalogue, findings)
    }
}

/// There is no rule of that id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule {id:?}; `Linter::rules` has all of them")]
pub struct UnknownRule {
    /// The id.
    pub id: String,
}
