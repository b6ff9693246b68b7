//! A server on the command line: its URL, or its program with arguments, and pairs of `--set`.

use super::Problem;

/// The address of a server.
pub(super) enum Target<'a> {
    Url(&'a str),
    Program(&'a str, &'a [String]),
}

impl<'a> Target<'a> {
    pub(super) fn of(words: &'a [String]) -> Result<Self, Problem> {
        let (first, rest) = words.split_first().ok_or_else(|| {
            Problem::usage("name a server by its URL, or by its program and arguments")
        })?;
        let is_url = first.starts_with("http://") || first.starts_with("https://");
        match (is_url, rest) {
            (true, []) => Ok(Self::Url(first)),
            (true, _) => Err(Problem::usage("a URL takes no arguments")),
            (false, _) => Ok(Self::Program(first, rest)),
        }
    }

    pub(super) fn is_url(&self) -> bool {
        matches!(self, Self::Url(_))
    }
}

/// A pair of `--set`.
pub(super) fn pair(text: &str) -> Result<(&str, &str), Problem> {
    text.split_once('=')
        .ok_or_else(|| Problem::usage("`--set` needs NAME=VALUE, such as `API_KEY=${MY_KEY}`"))
}
