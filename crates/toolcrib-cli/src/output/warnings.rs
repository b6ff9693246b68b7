//! Problems of a project's files.

use toolcrib_project::{Diagnostic, Diagnostics, Severity};

use super::{
    print::note,
    text::{self, BAD, GOOD, STRONG, WARN, count, safe},
};

/// Prints errors of project files, each with its position.
pub(crate) fn diagnostics(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        one_diagnostic(diagnostic);
    }
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    note!("{}", count(errors, "error"));
}

/// Prints warnings: all, or only their number, so that commands on the same project do not repeat
/// them.
pub(crate) fn warnings(diagnostics: &Diagnostics, all: bool) {
    let number = diagnostics.warnings().count();
    if all {
        diagnostics.warnings().for_each(one_diagnostic);
    } else if number > 0 {
        let number = text::count(number, "warning");
        note!("{WARN}{number}{WARN:#} about the project's files; add -v to see all");
    }
}

fn one_diagnostic(diagnostic: &Diagnostic) {
    let Diagnostic { file, line, column, message, .. } = diagnostic;
    let (style, word) = match diagnostic.severity {
        Severity::Error => (BAD, "error"),
        Severity::Warning => (WARN, "warning"),
    };
    let file = safe(file);
    note!("{STRONG}{file}:{line}:{column}{STRONG:#}: {style}{word}{style:#}: {}", safe(message));
    if let Some(help) = &diagnostic.help {
        note!("  {GOOD}help{GOOD:#}: {}", safe(help));
    }
}
