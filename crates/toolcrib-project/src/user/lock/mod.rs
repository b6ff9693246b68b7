//! Pinned definitions: a remote source's tools, prompts and instructions are used as they were at
//! their first use, until the user accepts a change.
//!
//! There are two places. The user's record, in the user's configuration folder, decides: a program
//! of the project can neither write it nor remove it. `toolcrib.lock`, in the project, has only the
//! digests; it is for other machines, and for CI.

mod comparison;
mod files;
mod pin;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib_core::{DefinitionPins, Digest, PinKind, PinRefusal, PinnedDefinition};
use toolcrib_engine::Redactor;

pub(crate) use self::files::PinFiles;
use self::{
    comparison::Comparison,
    files::SharedPins,
    pin::{Pin, Pins, RenewedPin},
};
pub use self::{
    files::{LOCK_FILE, LockError},
    pin::PinName,
};

/// The limit of pinned definitions of one source: a source could list new names for ever.
const MOST_PINS: usize = 10_000;

/// How a project uses its pinned definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LockMode {
    /// A definition is pinned at its first use, in [`Mode::Run`](crate::Mode::Run). A changed one is
    /// withheld.
    #[default]
    Pin,
    /// Nothing is pinned, and changes are remembered: to show or accept them.
    Review,
    /// For CI: a source with a definition that is not in `toolcrib.lock` exactly as listed is not
    /// used at all, and nothing is written.
    Locked,
}

/// A definition that is not pinned as it is listed now.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PinChange {
    /// Its place.
    pub place: PinName,
    /// The pinned digest; `None` if it is not pinned.
    pub pinned: Option<Digest>,
    /// The pinned definition, if this user has seen it and it is not too large.
    pub before: Option<Value>,
    /// The present definition.
    pub after: Value,
}

impl PinChange {
    /// Whether it is pinned, with another digest.
    pub fn is_changed(&self) -> bool {
        self.pinned.is_some()
    }
}

/// News about pinned definitions, for the user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LockEvent {
    /// Definitions were pinned at their first use.
    Pinned {
        /// The source.
        source: Arc<str>,
        /// The kind.
        kind: PinKind,
        /// Their number.
        count: usize,
    },
    /// A definition is withheld because it has changed. Reported once for each change.
    Changed(PinName),
    /// A definition of a pinned server is withheld because it is [new](Lock::ask_for_new). Reported
    /// once.
    New(PinName),
    /// The pins apply to this process only, because a file cannot be written.
    Unsaved(Arc<str>),
}

/// The pinned definitions of a project. Clones share them.
#[derive(Clone)]
pub struct Lock(Arc<Inner>);

type Listener = Arc<dyn Fn(&LockEvent) + Send + Sync>;

struct Inner {
    files: PinFiles,
    mode: LockMode,
    /// The options by which a command finds this project.
    flags: String,
    /// Whether pins are written.
    writes: bool,
    /// Whether new definitions of pinned servers are withheld.
    asks: AtomicBool,
    /// Pins contain secrets by reference only.
    redactor: Redactor,
    state: Mutex<State>,
    listener: Mutex<Option<Listener>>,
    /// The news before there was a listener.
    unheard: Mutex<Vec<LockEvent>>,
}

#[derive(Default)]
struct State {
    /// The user's pins.
    own: Pins,
    /// The digests of the project's file.
    shared: SharedPins,
    /// The state of the files at the last read.
    stamp: files::Stamp,
    is_read: bool,
    /// In a review, all definitions that are not pinned as listed.
    changes: BTreeMap<PinName, PinChange>,
    /// The kinds of definitions of each source that were listed, even if there were none.
    listed: HashSet<(Arc<str>, PinKind)>,
    /// The changes that were reported.
    reported: HashSet<(PinName, Digest)>,
    has_reported_unsaved: bool,
    /// The version of the secrets that the pins do not contain.
    redacted_at: u64,
    /// The sources whose definitions were compared.
    sources: BTreeSet<Arc<str>>,
}

/// The verdict on a definition.
#[derive(Clone, Copy)]
enum Verdict {
    Same,
    First,
    Changed(Digest),
}

impl Lock {
    /// The pins of a project. Reads nothing yet. `runs` says whether calls will be run, and `flags` are
    /// the options by which a command finds the project.
    pub(crate) fn new(
        files: PinFiles,
        (mode, runs): (LockMode, bool),
        flags: &str,
        redactor: &Redactor,
    ) -> Self {
        Self(Arc::new(Inner {
            files,
            mode,
            flags: flags.to_owned(),
            writes: runs && mode == LockMode::Pin,
            asks: AtomicBool::new(false),
            redactor: redactor.clone(),
            state: Mutex::default(),
            listener: Mutex::default(),
            unheard: Mutex::default(),
        }))
    }

    /// From here on, a definition of an MCP server that is not in the record of pins is withheld until
    /// the user accepts it, for a program that runs for long and lists again. A server without a record
    /// is pinned by its first listing, as otherwise.
    pub fn ask_for_new(&self) {
        self.0.asks.store(true, Ordering::Release);
    }

    /// Receives news, in place of an earlier receiver. It must not list tools.
    pub fn on_event(&self, listener: impl Fn(&LockEvent) + Send + Sync + 'static) {
        let listener: Listener = Arc::new(listener);
        *self.0.listener.lock() = Some(Arc::clone(&listener));
        // Documents are read while the project is loaded.
        let unheard = std::mem::take(&mut *self.0.unheard.lock());
        unheard.iter().for_each(|event| listener(event));
    }

    /// Whether the pins apply as for CI.
    pub fn is_locked(&self) -> bool {
        self.0.mode == LockMode::Locked
    }

    /// The project's file, if it has one.
    pub fn file(&self) -> Option<&Path> {
        self.0.files.shared()
    }

    /// The folder with the user's records, which a model's tools must not be able to write to.
    pub fn folder(&self) -> Option<&Path> {
        self.0.files.folder()
    }

    /// Whether another process has changed the pins since they were read last, such as by
    /// accepting a change: list the sources again then. Blocking.
    pub fn has_changed(&self) -> bool {
        let state = self.0.state.lock();
        state.is_read && state.stamp != self.0.files.stamp()
    }

    /// In a [review](LockMode::Review), the definitions listed so far that are not pinned as they
    /// are, by source, kind and name.
    pub fn changes(&self) -> Vec<PinChange> {
        self.0.state.lock().changes.values().cloned().collect()
    }

    /// The sources whose definitions have been compared so far, such as `openapi:shop.yaml`.
    pub fn sources(&self) -> Vec<Arc<str>> {
        self.0.state.lock().sources.iter().cloned().collect()
    }

    /// The places of all pins, in the user's record or in the project's file, for completions. Blocking.
    #[doc(hidden)]
    pub fn pinned(&self) -> Result<BTreeSet<PinName>, LockError> {
        let pins = self.0.files.load()?;
        Ok(pins.own.into_keys().chain(pins.shared.into_keys()).collect())
    }

    /// Pins these definitions as they were listed. Blocking.
    ///
    /// # Errors
    /// [`LockError`]. If only `toolcrib.lock` cannot be written, the user's record has the pins.
    pub fn accept(&self, changes: &[PinChange]) -> Result<(), LockError> {
        let pins = changes.iter().map(|change| {
            (change.place.clone(), Pin::of(&change.after, Digest::of_json(&change.after)))
        });
        let pins: Pins = pins.collect();
        let saved = self.0.files.save(&pins, true)?;
        let mut state = self.0.state.lock();
        state.changes.retain(|place, _| !pins.contains_key(place));
        state.take(saved);
        Ok(())
    }

    /// The command that shows or accepts a definition.
    fn command(&self, verb: &str, place: &PinName) -> String {
        let source = place.source.split_once(':').map_or(&*place.source, |(_, name)| name);
        let name = match place.kind {
            PinKind::Instructions => String::new(),
            _ => format!(" {}", place.name.escape_debug()),
        };
        format!("toolcrib lock {verb} {source}{name}{}", self.0.flags)
    }

    fn changed(&self, place: &PinName) -> Arc<str> {
        let accept = self.command("accept", place);
        match self.0.mode {
            LockMode::Locked => format!(
                "the {} differs from `{LOCK_FILE}`, and `--locked` permits no change; to accept \
                 it: {accept}",
                described(place)
            ),
            _ => format!(
                "its definition has changed since it was pinned; to see the change: {}; to accept \
                 it: {accept}",
                self.command("diff", place)
            ),
        }
        .into()
    }

    fn new_since(&self, place: &PinName) -> Arc<str> {
        format!(
            "it is new since its server was pinned; to see it: {}; to accept it: {}; to accept such \
             tools unasked: `new_tools = \"accept\"` in `[serve]`",
            self.command("diff", place),
            self.command("accept", place)
        )
        .into()
    }

    fn unpinned(&self, place: &PinName) -> Arc<str> {
        format!(
            "the {} is not in `{LOCK_FILE}`, and `--locked` permits no new definition; to accept \
             it: {}",
            described(place),
            self.command("accept", place)
        )
        .into()
    }

    /// A definition in the form that is pinned: with references in place of secrets, so that another
    /// value of a secret changes no pin, and before any other cleaning.
    fn pinnable(&self, definition: PinnedDefinition) -> PinnedDefinition {
        let name = self.0.redactor.referenced(Value::from(&*definition.name));
        PinnedDefinition {
            name: name.as_str().unwrap_or_default().into(),
            definition: self.0.redactor.referenced(definition.definition),
            is_offered: definition.is_offered,
        }
    }

    /// Puts references into pins that were written when a secret was not known yet.
    fn renew(&self, state: &mut State) -> Result<(), LockError> {
        let version = self.0.redactor.version();
        if std::mem::replace(&mut state.redacted_at, version) == version {
            return Ok(());
        }
        let mut renewed = Vec::new();
        for (place, pin) in &state.own {
            let name = Arc::clone(&place.name);
            let definition = pin.value().unwrap_or_default();
            let before = PinnedDefinition { name, definition, is_offered: true };
            let after = self.pinnable(before.clone());
            if after.name != before.name || after.definition != before.definition {
                let pin = match &pin.definition {
                    Some(_) => Pin::of(&after.definition, Digest::of_json(&after.definition)),
                    None => pin.clone(),
                };
                let renamed = PinName { name: after.name, ..place.clone() };
                renewed.push(RenewedPin { before: place.clone(), place: renamed, pin });
            }
        }
        for RenewedPin { before, place, pin } in &renewed {
            state.own.remove(before);
            state.own.insert(place.clone(), pin.clone());
        }
        if self.0.writes && !renewed.is_empty() {
            let saved = self.0.files.renew(&renewed)?;
            state.take(saved);
        }
        Ok(())
    }

    fn report(&self, event: &LockEvent) {
        let listener = self.0.listener.lock().clone();
        match listener {
            Some(listener) => listener(event),
            None => {
                let mut unheard = self.0.unheard.lock();
                if unheard.len() < MOST_PINS {
                    unheard.push(event.clone());
                }
            }
        }
    }

    /// The files again, if they have changed.
    fn read(&self, state: &mut State) -> Result<(), LockError> {
        let stamp = self.0.files.stamp();
        if !state.is_read || state.stamp != stamp {
            let loaded = self.0.files.load()?;
            // Pins that could not be written stay in memory.
            let kept = std::mem::take(&mut state.own);
            state.take(loaded);
            state.redacted_at = 0;
            if self.0.files.folder().is_none() || state.has_reported_unsaved {
                for (place, pin) in kept {
                    state.own.entry(place).or_insert(pin);
                }
            }
        }
        Ok(())
    }
}

impl State {
    fn take(&mut self, loaded: files::LoadedPins) {
        let files::LoadedPins { own, shared, stamp } = loaded;
        (self.own, self.shared, self.stamp, self.is_read) = (own, shared, stamp, true);
    }

    /// Whether a source was listed before: it is in the record of pins, or this process has seen a
    /// list. Hubs list what a caller searches for, so they never are.
    fn has_listed(&self, source: &Arc<str>, kind: PinKind) -> bool {
        let is = |place: &PinName| place.source == *source && place.kind == kind;
        source.starts_with("mcp:")
            && (self.listed.contains(&(Arc::clone(source), kind))
                || self.own.keys().any(is)
                || self.shared.keys().any(is))
    }

    fn verdict(&self, mode: LockMode, place: &PinName, digest: Digest) -> Verdict {
        let shared = self.shared.get(place).copied();
        let own = self.own.get(place).map(|pin| pin.digest);
        let pinned = if mode == LockMode::Locked { shared } else { own.or(shared) };
        match pinned {
            None => Verdict::First,
            Some(pinned) if pinned != digest => Verdict::Changed(pinned),
            // The project's digest is confirmed by the same definition; it becomes the user's.
            Some(_) if mode == LockMode::Pin && own.is_none() => Verdict::First,
            Some(_) => Verdict::Same,
        }
    }
}

impl DefinitionPins for Lock {
    fn check(
        &self,
        source: &str,
        kind: PinKind,
        definitions: &mut dyn Iterator<Item = PinnedDefinition>,
    ) -> Result<Vec<Option<PinRefusal>>, Arc<str>> {
        let mut state = self.0.state.lock();
        state.sources.insert(source.into());
        let read = self.read(&mut state).and_then(|()| self.renew(&mut state));
        read.map_err(|error| {
            format!("its definitions cannot be compared with the pinned ones: {error}")
        })?;
        let mut comparison = Comparison::new(self, &mut state, source.into(), kind);
        for definition in definitions {
            comparison.compare(self.pinnable(definition))?;
        }
        let (reasons, events) = comparison.finish();
        drop(state);
        events.iter().for_each(|event| self.report(event));
        Ok(reasons)
    }
}

/// `tool \`read\``, `instructions`.
fn described(place: &PinName) -> String {
    match place.kind {
        PinKind::Instructions => "text of its instructions".to_owned(),
        kind => format!("{kind} `{}`", place.name.escape_debug()),
    }
}

toolcrib_core::__internal::debug_fields!(Lock, lock, mode = lock.0.mode, ..);
