//! Tools to check, and readable findings.

use serde_json::{Value, json};
use toolcrib_lint::{Finding, LintTool, Linter, Report, Severity, lint};

/// A description without problems, about a subject.
pub(crate) fn sound(about: &str) -> String {
    format!("Everything that is known of {about}. Use it when asked for {about}.")
}

/// A tool without problems, except possibly in its name.
pub(crate) fn named(name: &str) -> LintTool {
    LintTool::new(name, sound(name), json!({ "type": "object", "properties": {} }))
}

/// A tool without problems, except possibly in its description.
pub(crate) fn described(description: &str) -> LintTool {
    LintTool { description: description.to_owned(), ..named("list_orders") }
}

/// A tool with this schema.
pub(crate) fn of_schema(schema: Value) -> LintTool {
    LintTool { input_schema: Some(schema), ..named("list_orders") }
}

/// A tool with one parameter.
pub(crate) fn of_parameter(parameter: Value, required: bool) -> LintTool {
    let required: &[&str] = if required { &["which"] } else { &[] };
    of_schema(
        json!({ "type": "object", "properties": { "which": parameter }, "required": required }),
    )
}

/// The findings in readable form.
pub(crate) fn found(tools: &[LintTool]) -> String {
    let report = lint(tools);
    // Sources' definitions are checked without the rules that warn.
    let errors = |report: Report| report.findings.into_iter().filter(is_error).collect::<Vec<_>>();
    assert_eq!(
        errors(Linter::new().errors_only().lint(tools)),
        errors(report.clone()),
        "a rule that is declared to warn reports errors"
    );
    shown(&report)
}

fn is_error(finding: &Finding) -> bool {
    finding.severity == Severity::Error
}

pub(crate) fn found_with(linter: &Linter, tools: &[LintTool]) -> String {
    shown(&linter.lint(tools))
}

fn shown(report: &Report) -> String {
    let findings = report.findings.iter().map(|finding| {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        format!("{severity}[{}] {}\n  help: {}\n", finding.rule, finding.message, finding.help)
    });
    findings.collect()
}

/// The ids of the rules with findings.
pub(crate) fn rules(tools: &[LintTool]) -> Vec<String> {
    let mut rules: Vec<_> = lint(tools).findings.into_iter().map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}
