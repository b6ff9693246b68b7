//! A server on the command line: its URL, or its program with arguments, and pairs of `--set`.

use toolcrib_config::suggest;

use crate::problem::Problem;

/// The address of a server.
pub(crate) enum Target<'a> {
    Url(&'a str),
    Program(&'a str, &'a [String]),
}

impl<'a> Target<'a> {
    pub(crate) fn of(words: &'a [String]) -> Result<Self, Problem> {
        let (first, rest) = words.split_first().ok_or_else(|| {
            Problem::usage("name a server by its URL, or by its program and arguments")
        })?;
        if first.starts_with('-') {
            return Err(Problem::usage(format!(
                "{} is neither a URL nor a program; {}",
                suggest::quoted([first.as_str()]),
                help_for_option(first)
            )));
        }
        let is_url = first.starts_with("http://") || first.starts_with("https://");
        match (is_url, rest) {
            (true, []) => Ok(Self::Url(first)),
            (true, _) => Err(Problem::usage("a URL takes no arguments")),
            (false, _) => Ok(Self::Program(first, rest)),
        }
    }

    pub(crate) fn is_url(&self) -> bool {
        matches!(self, Self::Url(_))
    }
}

/// The words for an option of another program that adds servers, such as `claude mcp add`.
fn help_for_option(option: &str) -> &'static str {
    match option.split('=').next().unwrap_or_default() {
        "-e" | "--env" | "-H" | "--header" => "write `--set NAME=VALUE` before the URL or program",
        "-t" | "--transport" => {
            "leave it out: a URL is a server over HTTP, and everything else is a program"
        }
        "-s" | "--scope" => "leave it out: a server is added to the project",
        _ => "options of a program follow the program",
    }
}

/// A pair of `--set`.
pub(crate) fn pair(text: &str) -> Result<(&str, &str), Problem> {
    text.split_once('=')
        .ok_or_else(|| Problem::usage("`--set` needs NAME=VALUE, such as `API_KEY=${MY_KEY}`"))
}
