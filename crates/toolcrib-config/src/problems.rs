//! Collecting problems.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use crate::{
    diagnostic::{Diagnostic, Diagnostics, Severity},
    spot::Spot,
};

/// How many problems are kept. An untrusted file can have as many as it has bytes.
const MOST: usize = 1_000;

/// How many characters a message or a help has: each may quote a name of any length.
const LONGEST: usize = 2_000;

/// Collects problems while a file is read. Shared by all its readers, so that one problem never
/// hides another.
#[derive(Debug)]
pub struct Problems {
    main: Arc<str>,
    found: RefCell<Vec<Diagnostic>>,
    /// The worst of those that were not kept.
    dropped: Cell<Option<Severity>>,
}

impl Problems {
    /// Creates an empty collection for a main file. `main` is the file whose problems are shown
    /// first.
    pub fn new(main: impl Into<Arc<str>>) -> Self {
        Self { main: main.into(), found: RefCell::default(), dropped: Cell::new(None) }
    }

    /// Records a problem of a file. The first 1,000 are kept, with at most 2,000 characters each;
    /// that there are more is one more problem.
    pub fn push(&self, mut problem: Diagnostic) {
        let mut found = self.found.borrow_mut();
        cut(&mut problem.message);
        problem.help.as_mut().map(cut);
        // Each operation of a document repeats the problems of its declaration.
        if found.last() == Some(&problem) {
            return;
        }
        if found.len() >= MOST {
            if self.dropped.get() != Some(Severity::Error) {
                self.dropped.set(Some(problem.severity));
            }
            return;
        }
        found.push(problem);
    }

    /// Whether an error was dropped already: one more changes nothing, so looking for it is wasted.
    pub(crate) fn is_full(&self) -> bool {
        self.dropped.get() == Some(Severity::Error)
    }

    /// Records problems that were found elsewhere.
    pub fn merge(&self, problems: Diagnostics) {
        problems.0.into_iter().for_each(|problem| self.push(problem));
    }

    /// Whether an error was recorded; warnings do not count.
    pub fn has_errors(&self) -> bool {
        let has = |problem: &Diagnostic| problem.severity == Severity::Error;
        self.dropped.get() == Some(Severity::Error) || self.found.borrow().iter().any(has)
    }

    /// All recorded problems, in the order of [`Diagnostics`], without duplicates.
    pub fn into_diagnostics(self) -> Diagnostics {
        let Self { main, found, dropped } = self;
        let mut found = found.into_inner();
        found.sort_by(|a, b| {
            let key = |problem: &Diagnostic| (problem.file != main, Arc::clone(&problem.file));
            (key(a), a.line, a.column).cmp(&(key(b), b.line, b.column))
        });
        found.dedup();
        if let Some(severity) = dropped.get() {
            let message = format!("there are more problems than the {MOST} that are shown");
            let more = Diagnostic::error(&Spot::start_of(main), message);
            found.push(Diagnostic { severity, ..more });
        }
        Diagnostics(found)
    }
}

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
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
