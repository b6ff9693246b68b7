//! What was found.

use std::collections::HashMap;

use serde::Serialize;

use crate::{
    catalogue::{Catalogue, Subject},
    text::visible,
};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The tool cannot be offered or called as it stands, or tries something on the model.
    Error,
    /// The model will choose or call it worse than it could, or it costs more than it should.
    Warning,
}

/// One thing that is wrong. In none of its texts is a character that is not seen, a control character
/// or a line feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's id.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// The tool's name; absent where it is about a source or about all tools.
    pub tool: Option<String>,
    /// Where the tool is declared, if that is known; else the source that it is about.
    pub origin: Option<String>,
    /// The part of the tool, as a path from its definition: `input_schema/properties/order_id`.
    pub path: Option<String>,
    /// What is wrong; it names the tool.
    pub message: String,
    /// What to do about it.
    pub help: String,
    #[serde(skip)]
    position: Option<usize>,
}

impl Finding {
    /// An error.
    pub fn error(message: impl AsRef<str>, help: impl AsRef<str>) -> Self {
        Self::new(Severity::Error, message.as_ref(), help.as_ref())
    }

    /// A warning.
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
        }
    }

    /// As one of a tool.
    #[must_use]
    pub fn of(mut self, subject: &Subject<'_>) -> Self {
        let tool = subject.tool();
        self.position = Some(subject.position());
        self.tool = Some(visible(&tool.name));
        self.origin = tool.origin.as_deref().map(visible);
        self
    }

    /// As one of a source.
    #[must_use]
    pub fn of_source(mut self, source: &str) -> Self {
        self.origin = Some(visible(source));
        self
    }

    /// As one of a part of the tool.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<str>) -> Self {
        self.path = Some(visible(path.as_ref()));
        self
    }

    /// Which of [`Report::tools`] it is about; `None` where it is about a source or all of them.
    pub fn position(&self) -> Option<usize> {
        self.position
    }
}

/// How many findings of one rule about one tool are told: a hostile catalogue must not drown the rest.
const MOST_OF_A_KIND: usize = 5;

/// What rules put their findings into.
#[derive(Debug, Default)]
pub struct Findings {
    rule: String,
    found: Vec<Finding>,
    of_a_kind: HashMap<Option<usize>, usize>,
}

impl Findings {
    /// Takes a finding of the rule that is being checked; of more than five about one tool the rest
    /// are dropped.
    pub fn push(&mut self, mut finding: Finding) {
        let found = self.of_a_kind.entry(finding.position).or_default();
        *found += 1;
        if *found > MOST_OF_A_KIND && finding.position.is_some() {
            return;
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

/// What a tool costs in every request that offers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolSize {
    /// Its name; what is not seen in it stands as `\u{…}`.
    pub name: String,
    /// Where it is declared, if that is known.
    pub origin: Option<String>,
    /// Name, description and schema of arguments as compact JSON, in characters.
    pub chars: usize,
    /// The same in tokens, [estimated](crate::estimated_tokens).
    pub tokens: usize,
}

/// Sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// How many tools were looked over.
    pub tools: usize,
    /// All of them, in characters.
    pub chars: usize,
    /// The same in tokens, [estimated](crate::estimated_tokens).
    pub tokens: usize,
    /// How many findings are errors.
    pub errors: usize,
    /// How many are warnings.
    pub warnings: usize,
}

/// What came of looking over a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The tools, in the order in which they came.
    pub tools: Vec<ToolSize>,
    /// What was found, by tool in their order; what is about no single tool comes last.
    pub findings: Vec<Finding>,
    /// Sums.
    pub totals: Totals,
}

impl Report {
    pub(crate) fn new(catalogue: &Catalogue<'_>, findings: Findings) -> Self {
        let findings = findings.in_order();
        let size = |subject: &Subject<'_>| ToolSize {
            name: visible(&subject.tool().name),
            origin: subject.tool().origin.as_deref().map(visible),
            chars: subject.chars(),
            tokens: subject.tokens(),
        };
        let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
        Self {
            tools: catalogue.tools().iter().map(size).collect(),
            totals: Totals {
                tools: catalogue.tools().len(),
                chars: catalogue.tools().iter().map(Subject::chars).sum(),
                tokens: catalogue.tools().iter().map(Subject::tokens).sum(),
                errors,
                warnings: findings.len() - errors,
            },
            findings,
        }
    }

    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
