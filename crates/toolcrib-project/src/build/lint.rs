//! The lint check of servers' and hubs' tool definitions: an attack withholds the tool.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, suggest};
use toolcrib_core::{DefinitionCheck, Tool};
use toolcrib_lint::{LintTool, Linter, Rule, Severity};

/// Allows all rules.
const ALL: &str = "*";

/// The check of a source's definitions without the allowed rules; `None` if all are allowed. An
/// unknown rule is recorded.
pub(crate) fn definition_check(
    allowed: &[Located<Arc<str>>],
    problems: &Problems,
) -> Option<DefinitionCheck> {
    let all = Linter::new();
    let mut linter = all.clone();
    let mut is_off = false;
    for rule in allowed {
        if *rule.value == *ALL {
            is_off = true;
        } else if let Ok(without) = linter.clone().allow(&rule.value) {
            linter = without;
        } else if !all.rules().iter().any(|known| *known.id() == *rule.value) {
            let message = format!("unknown lint rule `{}`", rule.value.escape_debug());
            let help = suggest::help(&rule.value, "rules", all.rules().iter().map(Rule::id));
            problems.push(Diagnostic::error(&rule.at, message).help(help));
        }
    }
    let linter = linter.lasting_attacks_only();
    (!is_off).then(|| DefinitionCheck::new(move |tool| refusal(&linter, tool)))
}

/// The first lint error in a definition.
fn refusal(linter: &Linter, tool: &Tool) -> Option<Arc<str>> {
    let described = LintTool::from(tool.definition()).from_source(tool.origin());
    let report = linter.lint(&[described]);
    let error = report.findings.iter().find(|found| found.severity == Severity::Error)?;
    Some(
        format!(
            "{} (lint rule `{rule}`; to offer it, set `lint_allow = [\"{rule}\"]` on its source, or use \
             `--lint-allow NAME={rule}` for an imported server)",
            error.message,
            rule = error.rule
        )
        .into(),
    )
}
