//! Findings and reports.

use std::collections::HashMap;

use serde::Serialize;

use crate::{
    catalog::{LintCatalog, Subject},
    text::visible,
};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The tool cannot be offered or called, or tries to manipulate the model.
    Error,
    /// The model will choose or call it worse than possible, or it costs more than necessary.
    Warning,
    /// A warning about a text that a [third party](crate::LintTool::foreign) worded.
    Note,
}

/// One problem of a catalog. None of its texts contains an invisible character, a control character
/// or a line feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's id.
    pub rule: String,
    /// The severity.
    pub severity: Severity,
    /// The tool's name; absent if it is about a source or about all tools.
    pub tool: Option<String>,
    /// The declaration of the tool, if known; otherwise the source that it is about.
    pub origin: Option<String>,
    /// The part of the tool, as a path from its definition: `input_schema/properties/order_id`.
    pub path: Option<String>,
    /// The problem, with the tool's name.
    pub message: String,
    /// How to fix it.
    pub help: String,
    #[serde(skip)]
    position: Option<usize>,
    #[serde(skip)]
    foreign: bool,
}

impl Finding {
    /// A finding that is an error.
    pub fn error(message: impl AsRef<str>, help: impl AsRef<str>) -> Self {
        Self::new(Severity::Error, message.as_ref(), help.as_ref())
    }

    /// A finding that is a warning.
    pub fn warning(message: impl AsRef<str>, help: impl AsRef<str>) -> Self {
        Self::new(Severity::Warning, message.as_ref(), help.as_ref())
    }

    fn new(severity: Severity, message: &str, help: &str) -> Self {
        Self {
            rule: String::new(),
            severity,
            tool: None,
            origin: None,
            path: None,
            message: visible(message),
            help: visible(help),
            position: None,
            foreign: false,
        }
    }

    /// Sets the tool of the finding.
    #[must_use]
    pub fn of(mut self, subject: &Subject<'_>) -> Self {
        let tool = subject.tool();
        self.position = Some(subject.position());
        self.foreign = tool.foreign;
        self.tool = Some(visible(&tool.name));
        self.origin = tool.origin.as_deref().map(visible);
        self
    }

    /// Sets the source of the finding.
    #[must_use]
    pub fn of_source(mut self, source: &str) -> Self {
        self.origin = Some(visible(source));
        self
    }

    /// Sets the part of the tool.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<str>) -> Self {
        self.path = Some(visible(path.as_ref()));
        self
    }

    /// The index in [`Report::tools`]; `None` if it is about a source or all of them.
    pub fn position(&self) -> Option<usize> {
        self.position
    }
}

/// Maximum number of reported findings of one rule about one tool: a hostile catalog must not hide
/// the rest.
const MOST_OF_A_KIND: usize = 5;

/// The warnings about texts that steer a model to or from a tool. They concern the project, also if
/// a third party worded the text.
const STEERS: [&str; 2] = ["claims-precedence", "speaks-of-foreign-tool"];

/// Collects the findings of rules.
#[derive(Debug, Default)]
pub struct Findings {
    rule: String,
    found: Vec<Finding>,
    of_a_kind: HashMap<Option<usize>, usize>,
}

impl Findings {
    /// Adds a finding of the current rule; drops it beyond five about one tool. A warning about the
    /// wording of a third party becomes a note, unless its text steers the model.
    pub fn push(&mut self, mut finding: Finding) {
        let found = self.of_a_kind.entry(finding.position).or_default();
        *found += 1;
        if *found > MOST_OF_A_KIND && finding.position.is_some() {
            return;
        }
        if finding.severity == Severity::Warning
            && finding.foreign
            && !STEERS.contains(&&*self.rule)
        {
            finding.severity = Severity::Note;
        }
        finding.rule.clone_from(&self.rule);
        self.found.push(finding);
    }

    pub(crate) fn begin(&mut self, rule: &str) {
        rule.clone_into(&mut self.rule);
        self.of_a_kind.clear();
    }

    fn in_order(mut self) -> Vec<Finding> {
        self.found.sort_by_key(|finding| finding.position.unwrap_or(usize::MAX));
        self.found
    }
}

/// The cost of a tool in every request that offers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolSize {
    /// Its name, with invisible characters as `\u{…}`.
    pub name: String,
    /// Its declaration, if known.
    pub origin: Option<String>,
    /// Name, description and schema of arguments as compact JSON, in characters.
    pub chars: usize,
    /// The same in tokens, [estimated](crate::estimated_tokens).
    pub tokens: usize,
}

/// The sums over all tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// The number of checked tools.
    pub tools: usize,
    /// Their total size, in characters.
    pub chars: usize,
    /// The same in tokens, [estimated](crate::estimated_tokens).
    pub tokens: usize,
    /// The number of errors.
    pub errors: usize,
    /// The number of warnings.
    pub warnings: usize,
    /// The number of notes.
    pub notes: usize,
}

/// The result of checking a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The tools, in catalog order.
    pub tools: Vec<ToolSize>,
    /// The findings, in the order of the tools; those about no single tool come last.
    pub findings: Vec<Finding>,
    /// Sums.
    pub totals: Totals,
}

impl Report {
    pub(crate) fn new(catalog: &LintCatalog<'_>, findings: Findings) -> Self {
        let findings = findings.in_order();
        let size = |subject: &Subject<'_>| ToolSize {
            name: visible(&subject.tool().name),
            origin: subject.tool().origin.as_deref().map(visible),
            chars: subject.chars(),
            tokens: subject.tokens(),
        };
        let of = |severity| findings.iter().filter(|found| found.severity == severity).count();
        Self {
            tools: catalog.tools().iter().map(size).collect(),
            totals: Totals {
                tools: catalog.tools().len(),
                chars: catalog.tools().iter().map(Subject::chars).sum(),
                tokens: catalog.tools().iter().map(Subject::tokens).sum(),
                errors: of(Severity::Error),
                warnings: of(Severity::Warning),
                notes: of(Severity::Note),
            },
            findings,
        }
    }

    /// Whether the report contains no errors and no warnings. Notes may be there.
    pub fn is_clean(&self) -> bool {
        self.totals.errors + self.totals.warnings == 0
    }
}
