use std::str::FromStr;

use toolcrib_core::{is_session_id, is_session_name};

/// A run on the command line: a session, and the number of a turn of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunName {
    /// The session's id or name.
    pub(crate) session: String,
    /// The turn; `None` is the last one.
    pub(crate) turn: Option<u32>,
}

impl FromStr for RunName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (session, turn) = match text.split_once('/') {
            None => (text, None),
            Some((session, turn)) => (session, Some(turn)),
        };
        let turn = turn.map(str::parse::<u32>).transpose();
        match turn {
            Ok(turn) if (is_session_id(session) || is_session_name(session)) && turn != Some(0) => {
                Ok(Self { session: session.to_owned(), turn })
            }
            _ => Err("write SESSION or SESSION/TURN, as `toolcrib runs` lists it, such as \
                      3f2a91c0d4e5/2"
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_session_and_a_turn() {
        let run = |session: &str, turn| Ok(RunName { session: session.to_owned(), turn });
        assert_eq!("refunds".parse(), run("refunds", None));
        assert_eq!("3f2a91c0d4e5/12".parse(), run("3f2a91c0d4e5", Some(12)));
        for wrong in ["", "a/", "a/0", "a/x", "a/1/2", "/1", "a b", "a/-1", "a/99999999999"] {
            assert!(wrong.parse::<RunName>().is_err(), "{wrong}");
        }
    }
}
