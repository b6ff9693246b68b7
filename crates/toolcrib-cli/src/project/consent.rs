//! Consent of the user: at the terminal, or by the records of earlier consent.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_project::{Consent, Review, TrustState, TrustStore, Verdict};

use super::load::Purpose;
use crate::output::{self, powers, shell_word};

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
                    TrustState::Changed => "has changed since you trusted it",
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
        if matches!(self.purpose, Purpose::Look(_) | Purpose::Check(_)) {
            return self.look_only(review, &reason, &command);
        }
        let shown = format!("{reason}{}", powers(&review.powers));
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
    fn look_only(&self, review: &Review, reason: &str, command: &str) -> Verdict {
        if !review.needs_trust() {
            return Verdict::Use;
        }
        if !self.quiet {
            output::notice(&format!(
                "{reason}; it starts no programs, and opens no connections and no files outside \
                 it, which leaves out:{}\nafter you have reviewed its files: {command}",
                powers(&review.powers)
            ));
        }
        Verdict::LookOnly(Arc::from(format!("it is not trusted; {command}")))
    }
}

pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks at the terminal; any answer except yes is a no.
pub(crate) fn ask(question: &str) -> bool {
    let mut stderr = io::stderr();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.is_ok()
        && io::stdin().lock().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
