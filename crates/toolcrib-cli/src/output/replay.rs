//! The result of a replay.

use serde::Serialize;

use super::{
    print::say,
    text::{BAD, DIM, GOOD, STRONG, count, one_line, safe},
};

/// The length limit of each side of a difference, in characters.
const SIDE: usize = 600;

/// The output of `replay --json`.
#[derive(Serialize)]
pub(crate) struct ReplayJson<'a> {
    pub(crate) run: &'a str,
    /// `journal`, or the name of the model that ran.
    pub(crate) model: &'a str,
    /// `journal`, or that read-only tools ran.
    pub(crate) tools: &'a str,
    pub(crate) iterations: u32,
    pub(crate) calls: usize,
    /// The number of calls that the journal answered.
    pub(crate) from_journal: usize,
    pub(crate) difference: Option<Difference>,
}

/// The result of a replay, as text.
pub(crate) fn replayed(replayed: &ReplayJson<'_>) {
    let ReplayJson { run, model, tools, iterations, calls, from_journal, difference } = replayed;
    say!(
        "{STRONG}replayed{STRONG:#} {run}: {}, {} {DIM}({from_journal} from the journal){DIM:#}",
        count(*iterations, "iteration"),
        count(*calls, "call"),
    );
    say!("  {DIM}model: {}; tools: {tools}{DIM:#}", safe(model));
    let Some(Difference { iteration, call, part, expected, actual }) = difference else {
        return say!("{GOOD}no difference{GOOD:#}");
    };
    let place = match (iteration, call) {
        (Some(iteration), Some(DifferentCall { tool, call_id, number })) => {
            format!(" in iteration {iteration}, call {number}: {} ({})", safe(tool), safe(call_id))
        }
        (Some(iteration), None) => format!(" in iteration {iteration}"),
        (None, Some(call)) => format!(" in the wrap-up, call {}", safe(&call.tool)),
        (None, None) => " at the end".to_owned(),
    };
    say!("{BAD}first difference{BAD:#}{place}: {part}");
    say!("  {DIM}expected{DIM:#}  {}", one_line(expected, SIDE));
    say!("  {DIM}actual{DIM:#}    {}", one_line(actual, SIDE));
}

/// The first difference.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// The iteration, from 1; `None` for the end of the run.
    pub(crate) iteration: Option<u32>,
    /// The call's tool and id, if it is one of a call.
    pub(crate) call: Option<DifferentCall>,
    /// The part that differs: `menu`, `calls`, `arguments`, `policy`, `outcome`, `result`, `end`, `answer`.
    pub(crate) part: &'static str,
    pub(crate) expected: String,
    pub(crate) actual: String,
}

/// The call of a difference.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DifferentCall {
    pub(crate) tool: String,
    pub(crate) call_id: String,
    /// Its number within the iteration, from 1.
    pub(crate) number: usize,
}
