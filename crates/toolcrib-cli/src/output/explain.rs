//! Why tools are offered or withheld.

use toolcrib_engine::{Cause, Explanation};

use super::{
    print::say,
    text::{DIM, GOOD, STRONG, WARN, safe},
};

/// One tool: its decisions in order, and the smallest change that would reverse the outcome.
pub(crate) fn why(why: &Explanation) {
    let tool = safe(&why.tool);
    match why.withheld_by() {
        Some(cause) => {
            say!("{STRONG}{tool}{STRONG:#} is {WARN}withheld{WARN:#} by {}", cause.stage);
        }
        None => say!("{STRONG}{tool}{STRONG:#} is {GOOD}offered{GOOD:#}"),
    }
    for Cause { stage, passed, text, .. } in &why.chain {
        let (style, word) = if *passed { (GOOD, "passed") } else { (WARN, "withheld") };
        say!("  {stage:<11}  {style}{word:<8}{style:#}  {}", safe(text));
    }
    say!("{}", safe(&why.change.text));
}

/// The decisions for an offered tool, on one line of its entry in the menu.
pub(super) fn in_short(why: &Explanation) {
    say!("    {DIM}{}{DIM:#}", safe(&passed(why)));
}

/// A withheld tool's entry in the menu.
pub(super) fn in_menu(why: &Explanation) {
    let name = safe(&why.tool);
    if let Some(cause) = why.withheld_by() {
        let text = safe(&cause.text);
        say!("  {WARN}{name}{WARN:#}  {DIM}by {}:{DIM:#} {text}", cause.stage);
    }
    let passed = passed(why);
    if !passed.is_empty() {
        say!("    {DIM}{}{DIM:#}", safe(&passed));
    }
    say!("    {}", safe(&why.change.text));
}

fn passed(why: &Explanation) -> String {
    let passed = why.chain.iter().filter(|cause| cause.passed);
    let texts: Vec<_> = passed.map(|cause| cause.text.as_str()).collect();
    texts.join("; ")
}
