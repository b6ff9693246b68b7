//! What the user agrees to: at the terminal, or by what was agreed to before.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_project::{Consent, Power, Review, Standing, TrustStore, Verdict};

use super::Purpose;
use crate::output::{self, shell_word};

/// Decides by the user's records, and by the user where one sits at the terminal.
#[derive(Debug)]
pub(super) struct UserConsent {
    pub(super) store: TrustStore,
    /// Whether the project was found, in place of being named.
    pub(super) found: bool,
    /// The first imported file, where there is no project.
    pub(super) import: Option<PathBuf>,
    pub(super) purpose: Purpose,
    pub(super) quiet: bool,
}

impl Consent for UserConsent {
    fn review(&self, review: &Review) -> Verdict {
        let standing = self.store.standing(review, self.found);
        let (reason, command) = match &standing {
            Standing::Trusted => return Verdict::Use,
            Standing::Foreign(foreign) => {
                let reason = format!("{foreign}, who could have it do anything with your rights");
                (reason, format!("toolcrib trust --owner {}", shell_word(foreign.path())))
            }
            standing => {
                let folder = review.folder.as_deref().or(self.import.as_deref());
                let folder = folder.unwrap_or(Path::new("."));
                let reason = match standing {
                    Standing::Changed => "has changed since you trusted it",
                    _ => "was found here and not named, and you have not trusted it",
                };
                let shown = folder.to_string_lossy();
                (
                    format!("the project {shown} {reason}"),
                    format!("toolcrib trust {}", shell_word(folder)),
                )
            }
        };
        // Names of folders are the project's too, and must not look like lines of ours.
        let [reason, command] = [reason, command].map(|text| text.replace('\n', "\\n"));
        if matches!(self.purpose, Purpose::Look(_)) {
            return self.look_only(review, &reason, &command);
        }
        let shown = format!("{reason}{}", powers(&review.powers));
        let is_foreign = matches!(standing, Standing::Foreign(_));
        if is_foreign || !can_ask() {
            let help = format!("when you have looked at its files: {command}");
            return Verdict::Refuse(format!("{shown}\n{help}"));
        }
        output::notice(&shown);
        if !ask("Trust it, as it is now?") {
            return Verdict::Refuse("the project is not trusted, so nothing was done".to_owned());
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
        if review.powers.is_empty() {
            return Verdict::Use;
        }
        if !self.quiet {
            output::notice(&format!(
                "{reason}; nothing of it is started or dialed, which leaves out:{}\n\
                 when you have looked at its files: {command}",
                powers(&review.powers)
            ));
        }
        Verdict::LookOnly(Arc::from(format!("it is not trusted; {command}")))
    }
}

/// What a project may do, each on lines of its own.
pub(crate) fn powers(powers: &[Power]) -> String {
    let indented = |power: &Power| format!("\n  {}", power.to_string().replace('\n', "\n  "));
    powers.iter().map(indented).collect()
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks at the terminal; everything but a yes is a no.
fn ask(question: &str) -> bool {
    let mut stderr = io::stderr();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.is_ok()
        && io::stdin().lock().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
