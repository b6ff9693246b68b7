//! Approval of calls in a project: the store, the key, and programs that could reach the key.

use std::{path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;

use toolcrib_approvals::{ApprovalKeys, Approvals};
use toolcrib_capabilities::process::SandboxTier;
use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::{ApprovalMark, ApprovalStore, Effect, MarkStore, Secret, SessionStoreError};
use toolcrib_store::PostgresMarks;

use super::{
    secrets::ProjectSecrets,
    sessions::{Sessions, StoreUrl},
};
use crate::{
    file::{ApprovalsSection, PolicySection},
    private,
};

/// The folder of the key in the user's configuration of Toolcrib.
const FOLDER: &str = "approvals";

/// A program of a project whose sandbox does not hide the user's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WeakProgram {
    pub(crate) at: Spot,
    pub(crate) tier: SandboxTier,
}

/// The approvals of a project: calls wait in its store of sessions, and decisions are sealed with the
/// user's key.
#[derive(Debug, Clone)]
pub struct ProjectApprovals {
    sessions: Sessions,
    keys: ApprovalKeys,
    place: Arc<str>,
    expire_after: Option<Duration>,
    asks: bool,
    advisory: Arc<[Arc<str>]>,
    /// The secret that machines share.
    secret: Option<Secret>,
}

impl ProjectApprovals {
    /// Records an error if the project is strict and a program could reach the key; and a warning
    /// for each rule that asks where no decision is possible. `asks` says whether a call may be asked about.
    pub(crate) fn new(
        (section, rules): (&ApprovalsSection, &PolicySection),
        asks: bool,
        sessions: &Sessions,
        root: &Path,
        programs: &[WeakProgram],
        (secrets, held): (&ProjectSecrets, Option<&Arc<str>>),
        problems: &Problems,
    ) -> Self {
        let of_user = private::config_of_user().map(|all| all.join(FOLDER));
        let keys = match &section.shared {
            Some(shared) => shared_keys(shared, secrets, held, problems),
            None => ApprovalKeys::new(of_user),
        };
        let advisory = advisory(programs);
        let this = Self {
            sessions: sessions.clone(),
            place: root.to_string_lossy().into(),
            expire_after: section.expire_after,
            asks,
            keys,
            advisory: advisory.into(),
            secret: section.shared.as_ref().and_then(|(key, _)| secrets.get(&key.value).ok()),
        };
        if let Some(strict) = section.is_strict.as_ref().filter(|strict| strict.value) {
            for reason in &*this.advisory {
                let message = format!("approvals are advisory here: {reason}");
                let help = "write sandbox = \"files\" or \"full\" for it, or mode = \"advisory\"";
                problems.push(Diagnostic::error(&strict.at, message).help(help));
            }
        }
        if let Some(reason) = this.unanswered() {
            for rule in rules.rules.iter().filter(|rule| rule.effect == Some(Effect::Ask)) {
                let message = format!("this rule asks, and without a terminal {reason}");
                let help = "calls that match it are denied, except at a terminal";
                problems.push(Diagnostic::warning(&rule.at, message).help(help));
            }
        }
        this
    }

    /// The secret of a key that machines share, if the project names one.
    pub(crate) fn shared_secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// Whether a rule of the project asks for approval, or a tool does while a conversation is tainted.
    pub fn are_needed(&self) -> bool {
        self.asks
    }

    /// Why approvals are advisory: programs of the project through which a model could
    /// reach the user's key, and approve its own calls. Empty if there is none.
    pub fn advisory(&self) -> &[Arc<str>] {
        &self.advisory
    }

    /// Why no decision is possible without a terminal; `None` if one is, or no rule asks.
    pub fn unanswered(&self) -> Option<&'static str> {
        if !self.asks {
            None
        } else if !self.sessions.are_stored() {
            Some("a call cannot wait, because `[sessions]` has store = \"none\"")
        } else if !self.keys.can_seal() {
            Some("no decision can be sealed, because there is no key")
        } else {
            None
        }
    }

    /// The approvals in a store that is open already.
    pub fn in_store(&self, store: Arc<dyn ApprovalStore>) -> Approvals {
        let approvals = Approvals::new(store, self.keys.clone(), Arc::clone(&self.place));
        match self.expire_after {
            Some(time) => approvals.expire_after(time),
            None => approvals,
        }
    }

    /// Opens the store for calls without a session. `None` if no rule asks, or the project stores
    /// nothing. Blocking.
    ///
    /// # Errors
    /// [`SessionStoreError`], with the file or folder.
    pub fn open(&self) -> Result<Option<Approvals>, SessionStoreError> {
        if !self.asks || !self.sessions.are_stored() {
            return Ok(None);
        }
        Ok(Some(self.in_store(self.sessions.open()?)))
    }

    /// Opens the store to inspect or decide; `None` if there is none. Blocking.
    ///
    /// # Errors
    /// [`SessionStoreError`], with the file.
    pub fn open_existing(&self) -> Result<Option<Approvals>, SessionStoreError> {
        Ok(self.sessions.open_existing()?.map(|store| self.in_store(store)))
    }
}

/// The keys of secrets. Without them nothing can be settled.
fn shared_keys(
    (key, marks): &(Located<Arc<str>>, Located<Arc<str>>),
    secrets: &ProjectSecrets,
    held: Option<&Arc<str>>,
    problems: &Problems,
) -> ApprovalKeys {
    let none = || ApprovalKeys::new(None);
    let url = match held {
        Some(reason) => StoreUrl::Held(Arc::clone(reason)),
        None => StoreUrl::Secret { secrets: secrets.clone(), name: Arc::clone(&marks.value) },
    };
    let Ok(secret) = secrets.get(&key.value) else {
        let message = format!("the secret `{}` is not available", key.value);
        let help = "until it is, no call can be approved";
        problems.push(Diagnostic::warning(&key.at, message).help(help));
        return none();
    };
    let marks = Arc::new(Marks { url, opened: Mutex::default() });
    ApprovalKeys::shared(secret.expose(), marks).unwrap_or_else(|error| {
        problems.push(Diagnostic::error(&key.at, error.to_string()));
        none()
    })
}

/// The marks of a database, which is connected to when they are first needed.
struct Marks {
    url: StoreUrl,
    opened: Mutex<Option<PostgresMarks>>,
}

impl Marks {
    fn open(&self) -> Result<PostgresMarks, SessionStoreError> {
        let mut opened = self.opened.lock();
        if let Some(marks) = &*opened {
            return Ok(marks.clone());
        }
        let marks = PostgresMarks::connect(&self.url.get()?)?;
        *opened = Some(marks.clone());
        Ok(marks)
    }
}

impl MarkStore for Marks {
    fn mark(&self, mark: ApprovalMark, id: &str, until_ms: u64) -> Result<bool, SessionStoreError> {
        self.open()?.mark(mark, id, until_ms)
    }

    fn marked(&self, mark: ApprovalMark, ids: &[&str]) -> Result<Vec<String>, SessionStoreError> {
        self.open()?.marked(mark, ids)
    }
}

fn advisory(programs: &[WeakProgram]) -> Vec<Arc<str>> {
    let mut reasons: Vec<Arc<str>> = Vec::new();
    for WeakProgram { at, tier } in programs {
        let reason = format!(
            "the program at {at} runs in the sandbox `{tier}`, which does not hide your key"
        );
        if !reasons.iter().any(|known| **known == *reason) {
            reasons.push(reason.into());
        }
    }
    reasons
}
