//! The faults.

use std::str::FromStr;

/// The help text.
pub(crate) const LIST: &str = "\
  exit-at-start   exits before it reads anything
  hang-at-start   reads, and never answers
  hang-at-list    never answers tools/list
  hang-at-call    never answers tools/call
  crash-on-call=N exits at its Nth call, after executing it
  die-mid-call    exits in the middle of a response
  flood-changes   sends notifications of changed tools all the time
  flood-answers   sends responses to nonexistent requests all the time
  garbage         writes lines that are not JSON-RPC before each response
  garbage-only    writes such lines all the time, from the first call on
  wrong-ids       answers calls under other ids
  long-line       answers a call with a line of 1 GB
  endless-pages   always has another page of tools
  cursor-loop     always names the same next page
  loud-stderr     writes 100 MB to standard error before it starts
  grandchildren   leaves processes in another session
  stay            continues after the end of its input, and ignores SIGTERM
  answers-twice   sends every response twice
  bad-result      answers calls with an invalid result
  bad-base64      answers calls with an image that cannot be decoded
  huge-result=N   answers calls with a text of N bytes";

/// One way to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A correct server, for comparison.
    None,
    /// The process that `grandchildren` leaves; not a server.
    Linger,
    ExitAtStart,
    HangAtStart,
    HangAtList,
    HangAtCall,
    CrashOnCall(u64),
    DieMidCall,
    FloodChanges,
    FloodAnswers,
    Garbage,
    GarbageOnly,
    WrongIds,
    LongLine,
    EndlessPages,
    CursorLoop,
    LoudStderr,
    Grandchildren,
    Stay,
    AnswersTwice,
    BadResult,
    BadBase64,
    HugeResult(u64),
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, number) =
            text.split_once('=').map_or((text, None), |(name, number)| (name, Some(number)));
        let number = || {
            number
                .and_then(|number| number.parse().ok())
                .ok_or_else(|| format!("`{name}` needs a number, as in `{name}=3`"))
        };
        Ok(match name {
            "none" => Self::None,
            "linger" => Self::Linger,
            "exit-at-start" => Self::ExitAtStart,
            "hang-at-start" => Self::HangAtStart,
            "hang-at-list" => Self::HangAtList,
            "hang-at-call" => Self::HangAtCall,
            "crash-on-call" => Self::CrashOnCall(number()?),
            "die-mid-call" => Self::DieMidCall,
            "flood-changes" => Self::FloodChanges,
            "flood-answers" => Self::FloodAnswers,
            "garbage" => Self::Garbage,
            "garbage-only" => Self::GarbageOnly,
            "wrong-ids" => Self::WrongIds,
            "long-line" => Self::LongLine,
            "endless-pages" => Self::EndlessPages,
            "cursor-loop" => Self::CursorLoop,
            "loud-stderr" => Self::LoudStderr,
            "grandchildren" => Self::Grandchildren,
            "stay" => Self::Stay,
            "answers-twice" => Self::AnswersTwice,
            "bad-result" => Self::BadResult,
            "bad-base64" => Self::BadBase64,
            "huge-result" => Self::HugeResult(number()?),
            _ => return Err(format!("unknown fault `{text}`")),
        })
    }
}
