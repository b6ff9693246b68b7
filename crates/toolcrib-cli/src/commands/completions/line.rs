//! The command line that a shell completes.

use std::{
    env,
    ffi::{OsStr, OsString},
};

use clap::{Arg, ArgMatches, Command, FromArgMatches as _, builder::ValueParser};
use tokio::runtime::{Builder, Runtime};
use toolcrib_core::{CancellationToken, SessionOwner};
use toolcrib_project::Project;

use crate::{
    args::{Cli, GlobalArgs, IdentityArgs},
    host::stored::inspected,
};

/// A command line as far as it is written.
pub(super) struct Line {
    global: GlobalArgs,
    /// Those of the innermost command.
    matches: ArgMatches,
}

impl Line {
    /// Reads it from the arguments by which a shell requests candidates: it follows `--`.
    pub(super) fn read(args: impl Iterator<Item = OsString>) -> Option<Self> {
        let words = args.skip_while(|word| word != "--").skip(1).map(at_home);
        let line = lenient(Cli::line()).ignore_errors(true);
        let mut matches = line.try_get_matches_from(words).ok()?;
        let mut global = GlobalArgs::from_arg_matches(&matches).ok()?;
        global.quiet = true;
        while let Some((_, below)) = matches.remove_subcommand() {
            matches = below;
        }
        Some(Self { global, matches })
    }

    /// The first value of an argument.
    pub(super) fn value(&self, id: &str) -> Option<String> {
        let mut values = self.matches.try_get_raw(id).ok()??;
        values.next()?.to_str().map(str::to_owned)
    }

    /// Whether a flag is set.
    pub(super) fn is_set(&self, id: &str) -> bool {
        self.matches.try_get_one(id).is_ok_and(|set| set == Some(&true))
    }

    /// The owner of the sessions that it is about.
    pub(super) fn owner(&self) -> SessionOwner {
        let whom =
            IdentityArgs { principal: self.value("principal"), tenant: self.value("tenant") };
        whom.owner()
    }

    /// Its project; `None` if that cannot be loaded.
    pub(super) fn project(&self) -> Option<Project> {
        let runtime: Runtime = Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(inspected(&self.global, &CancellationToken::new())).ok()
    }
}

/// The line, in which any word is a value: one that is written by half must not hide those after it.
fn lenient(command: Command) -> Command {
    let any = |arg: Arg| match arg.get_action().takes_values() && !arg.is_global_set() {
        true => arg.value_parser(ValueParser::os_string()),
        false => arg,
    };
    command.mut_args(any).mut_subcommands(lenient)
}

/// The word with the home folder in place of `~`, as the shell passes it on when the line is run.
fn at_home(word: OsString) -> OsString {
    let rest = match word.to_str() {
        Some("~") => "",
        Some(word) => match word.strip_prefix("~/") {
            Some(rest) => rest,
            None => return word.into(),
        },
        None => return word,
    };
    env::home_dir().map_or_else(|| word.clone(), |home| home.join(OsStr::new(rest)).into())
}
