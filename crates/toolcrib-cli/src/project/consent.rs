//! Consent of the user: at the terminal, or by the records of earlier consent.

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_core::CancellationToken;
use toolcrib_project::{
    Consent, LoadError, LoadOptions, Project, Review, TrustState, TrustStore, Verdict,
};

use super::load::{Purpose, blocking, unless_cancelled};
use crate::{
    output::{self, changes, powers, shell_word},
    problem::Problem,
};

/// Decides by the user's records, and by a question if a user is at the terminal.
#[derive(Debug)]
pub(crate) struct UserConsent {
    pub(crate) store: TrustStore,
    /// Whether the project was found, not named.
    pub(crate) found: bool,
    /// The first imported file, without a project.
    pub(crate) import: Option<PathBuf>,
    pub(crate) purpose: Purpose,
    pub(crate) quiet: bool,
    /// Whether commands that only inspect also show the actions.
    pub(crate) verbose: bool,
}

impl Consent for UserConsent {
    fn review(&self, review: &Review) -> Verdict {
        let state = self.store.state(review, self.found);
        let (reason, command) = match &state {
            TrustState::Trusted => return Verdict::Use,
            TrustState::Foreign(foreign) => {
                let reason = format!("{foreign}, who could make it do anything with your rights");
                (reason, format!("toolcrib trust --owner {}", shell_word(foreign.path())))
            }
            state => {
                let folder = review.folder.as_deref().or(self.import.as_deref());
                let folder = folder.unwrap_or(Path::new("."));
                let reason = match state {
                    TrustState::Changed(_) => "has changed since you trusted it",
                    TrustState::OtherFormat => {
                        "was trusted by another version of toolcrib, whose record does not say what \
                        you agreed to"
                    }
                    _ => {
                        "was found in this folder or above it, not named, and you have not \
                        trusted it"
                    }
                };
                let shown = folder.to_string_lossy();
                (
                    format!("the project {shown} {reason}"),
                    format!("toolcrib trust {}", shell_word(folder)),
                )
            }
        };
        // Folder names come from the project too, and must not look like our output.
        let [reason, command] = [reason, command].map(|text| text.replace('\n', "\\n"));
        let actions = match &state {
            TrustState::Changed(all) => changes(all),
            _ => powers(&review.powers),
        };
        if matches!(self.purpose, Purpose::Look(_) | Purpose::Check(_)) {
            return self.look_only(review, &reason, &actions, &command);
        }
        let shown = format!("{reason}{actions}");
        let is_foreign = matches!(state, TrustState::Foreign(_));
        if is_foreign || !can_ask() {
            let help = format!("after you have reviewed its files: {command}");
            return Verdict::Refuse(format!("{shown}\n{help}"));
        }
        output::notice(&shown);
        if !ask("Trust it, as it is now?") {
            return Verdict::Refuse("the project is not trusted; nothing was done".to_owned());
        }
        match self.store.trust(review) {
            Ok(()) => Verdict::Use,
            Err(error) => Verdict::Refuse(error.to_string()),
        }
    }

    fn replace(&self, files: &[PathBuf]) -> bool {
        let said_yes = matches!(self.purpose, Purpose::Run(fresh) if fresh.yes);
        if said_yes || !can_ask() {
            return true;
        }
        let files: Vec<_> = files.iter().map(|file| format!("\n  {}", file.display())).collect();
        output::notice(&format!(
            "these databases are replaced by new ones, and kept under other names:{}",
            files.concat()
        ));
        ask("Replace them?")
    }
}

impl UserConsent {
    fn look_only(&self, review: &Review, reason: &str, actions: &str, command: &str) -> Verdict {
        if !review.needs_trust() {
            return Verdict::Use;
        }
        if !self.quiet {
            let actions = if self.verbose { actions } else { "" };
            output::notice(&format!(
                "{reason}; nothing of it is started, dialed or opened outside it; to trust it: \
                 {command}{actions}"
            ));
        }
        Verdict::LookOnly(Arc::from(format!("it is not trusted; {command}")))
    }
}

/// The project's present state. Starts no program, opens no connection and creates no file.
pub(crate) fn review(dir: &Path, cancel: CancellationToken) -> Result<Review, LoadError> {
    Project::review(dir, &LoadOptions { cancel, ..LoadOptions::default() })
}

pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks at the terminal; any answer except yes is a no. Waits for the answer on this thread.
pub(crate) fn ask(question: &str) -> bool {
    let answer = output::ask_line(&format!("{question} [y/N] ")).unwrap_or_default();
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// The same for a command that is cancelled while the question is open.
pub(crate) async fn confirmed(
    question: &'static str,
    cancellation: &CancellationToken,
) -> Result<bool, Problem> {
    unless_cancelled(blocking(|| ask(question)), cancellation).await?
}
