//! Collecting problems.

use std::{cell::RefCell, sync::Arc};

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};

/// Where problems are put while something is read. Shared by all readers of it, so that one
/// problem never hides another.
#[derive(Debug)]
pub struct Problems {
    main: Arc<str>,
    found: RefCell<Vec<Diagnostic>>,
}

impl Problems {
    /// No problem yet. `main` is the file whose problems are shown first.
    pub fn new(main: impl Into<Arc<str>>) -> Self {
        Self { main: main.into(), found: RefCell::default() }
    }

    /// Records a problem.
    pub fn push(&self, problem: Diagnostic) {
        self.found.borrow_mut().push(problem);
    }

    /// Records all that was found elsewhere.
    pub fn merge(&self, problems: Diagnostics) {
        self.found.borrow_mut().extend(problems.0);
    }

    /// Whether an error was recorded so far; warnings do not count.
    pub fn has_errors(&self) -> bool {
        self.found.borrow().iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All that was recorded, in the order of [`Diagnostics`], each once.
    pub fn into_diagnostics(self) -> Diagnostics {
        let Self { main, found } = self;
        let mut found = found.into_inner();
        found.sort_by(|a, b| {
            let key = |problem: &Diagnostic| (problem.file != main, Arc::clone(&problem.file));
            (key(a), a.line, a.column).cmp(&(key(b), b.line, b.column))
        });
        found.dedup();
        Diagnostics(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spot::Spot;

    #[test]
    fn the_main_file_comes_first_then_files_and_places_in_order_each_problem_once() {
        let problems = Problems::new("m");
        let at = |file: &str, line, column| Spot { file: file.into(), line, column };
        for spot in [at("z", 1, 1), at("a", 2, 1), at("m", 3, 5), at("a", 2, 1), at("m", 3, 2)] {
            problems.push(Diagnostic::warning(&spot, "odd"));
        }
        assert!(!problems.has_errors());
        let elsewhere = Problems::new("script:s");
        elsewhere.push(Diagnostic::error(&at("script:s", 1, 1), "bad").help("write good"));
        problems.merge(elsewhere.into_diagnostics().in_file("s"));
        assert!(problems.has_errors());
        let found = problems.into_diagnostics();
        assert_eq!((found.errors().count(), found.warnings().count()), (1, 4));
        insta::assert_snapshot!(found, @r#"
        m:3:2: warning: odd
        m:3:5: warning: odd
        a:2:1: warning: odd
        s:1:1: bad
            help: write good
        z:1:1: warning: odd
        "#);
    }
}
