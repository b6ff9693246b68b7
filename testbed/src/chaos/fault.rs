//! What can be broken.

use std::str::FromStr;

/// For people.
pub(crate) const LIST: &str = "\
  exit-at-start   ends before it has read anything
  hang-at-start   reads, and answers nothing
  hang-at-list    never answers tools/list
  hang-at-call    never answers tools/call
  crash-on-call=N ends at its Nth call, which it has executed
  die-mid-call    ends with half of an answer written
  flood-changes   says all the time that its tools have changed
  flood-answers   answers requests all the time that nobody made
  garbage         writes lines that are not JSON-RPC before each answer
  garbage-only    writes such lines all the time, from the first call on
  wrong-ids       answers calls under other ids
  long-line       answers a call with a line of 1 GB
  endless-pages   has always another page of tools
  cursor-loop     names the same next page over and over
  loud-stderr     writes 100 MB to standard error before it begins
  grandchildren   leaves processes behind that have left its session
  stay            goes on after its input has ended, and ignores SIGTERM
  answers-twice   gives every answer twice
  bad-result      answers calls with what is no result of a call
  bad-base64      answers calls with an image that cannot be decoded
  huge-result=N   answers calls with a text of N bytes";

/// One way to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An orderly server, to be compared with.
    None,
    /// What is left behind by `grandchildren`; not a server at all.
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
            _ => return Err(format!("there is no fault `{text}`")),
        })
    }
}
