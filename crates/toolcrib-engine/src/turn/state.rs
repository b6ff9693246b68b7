use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use toolcrib_core::{
    __internal::millis, Approver, Attachments, CancellationToken, ClientHandle, ClientPort, Digest,
    EventKind, Identity, Journal, Menu, ToolRegistry, ToolResult, TurnEvents, TurnInfo,
    TurnSignals,
};

use crate::{
    compose::{Composition, Situation},
    deferral::{Reveal, RevealedTools},
    parts::EngineParts,
    personality::{Personality, child::ChildAgents},
    pipe::{CallCounter, ClientWait, RuledClient},
    policy::{halt::HaltSignal, questions::Questions},
    reliability::ReliabilityContext,
    skills::{ActiveSkills, Snapshot},
};

/// The state that a turn and its iterations share.
pub(super) struct TurnState {
    pub(super) engine: Arc<EngineParts>,
    pub(super) events: Arc<TurnEvents>,
    pub(super) active_skills: Arc<ActiveSkills>,
    pub(super) roles: Arc<[Arc<str>]>,
    /// The roles that claims add.
    pub(super) roles_by_claims: Arc<[Arc<str>]>,
    pub(super) personality: Arc<Personality>,
    pub(super) cancellation: CancellationToken,
    /// For the turn, not for an iteration: in the gateway each call is a separate iteration.
    pub(super) halting: HaltSignal,
    /// The turn's registry, created when first requested; until then the baseline is used.
    pub(super) registry: OnceLock<Arc<ToolRegistry>>,
    /// The signals by which its executor ends it.
    pub(super) signals: TurnSignals,
    pub(super) call_counter: CallCounter,
    /// The deferred tools that searches have found, and the last menu with them.
    pub(super) revealed: Mutex<RevealedMenu>,
    /// How the model calls them.
    pub(super) reveal: Reveal,
    /// Whether the conversation has read content of unknown authors.
    pub(super) tainted: AtomicBool,
    /// The fingerprint of the last offered menu.
    pub(super) offered: Mutex<Option<Digest>>,
    /// `None` if the turn has no questions.
    pub(super) questions: Option<Questions>,
    /// The beginning of its calls' idempotency keys.
    pub(super) idempotency_scope: Arc<str>,
    /// The turn's own approver, instead of the engine's.
    pub(super) approver: Option<Arc<dyn Approver>>,
    /// The client that remote servers may ask.
    pub(super) client: Option<Arc<dyn ClientPort>>,
    /// The turn's own journal, in addition to the engine's.
    pub(super) journal: Option<Arc<dyn Journal>>,
    pub(super) working_dir: Arc<Path>,
    pub(super) info: Arc<TurnInfo>,
    pub(super) attachments: Arc<Attachments>,
    pub(super) dry_run: bool,
    /// Whether nothing of it can be used after it.
    pub(super) keeps_nothing: bool,
    /// Whether other processes continue its conversation.
    pub(super) shares_conversation: bool,
    pub(super) child_agents: Option<Arc<dyn ChildAgents>>,
    pub(super) recovery: ReliabilityContext,
}

/// The found tools of a turn.
#[derive(Default)]
pub(super) struct RevealedMenu {
    pub(super) tools: RevealedTools,
    /// A menu with the found tools: the composed menu that it was made of, the version of the list,
    /// and itself.
    last: Option<(Arc<Menu>, u64, Arc<Menu>)>,
}

impl RevealedMenu {
    pub(super) fn new(tools: RevealedTools) -> Self {
        Self { tools, last: None }
    }
}

impl TurnState {
    /// A composed menu with the tools that were found: of these, those that it still defers. The
    /// same instance while nothing changes.
    pub(super) fn with_revealed(&self, composed: &Arc<Menu>) -> Arc<Menu> {
        if composed.deferred().is_empty() {
            return Arc::clone(composed);
        }
        let mut revealed = self.revealed.lock();
        let RevealedMenu { tools, last } = &mut *revealed;
        if tools.names().len() == 0 {
            return Arc::clone(composed);
        }
        if let Some((of, version, menu)) = last
            && Arc::ptr_eq(of, composed)
            && *version == tools.version()
        {
            return Arc::clone(menu);
        }
        let menu = Arc::new(composed.reveal(tools.names(), self.reveal == Reveal::Append));
        *last = Some((Arc::clone(composed), tools.version(), Arc::clone(&menu)));
        menu
    }

    /// Reveals the tools that the results of an iteration's calls name.
    pub(super) fn settle_revealed(&self, iteration: u32, results: &[ToolResult]) {
        let (new, total) = {
            let mut revealed = self.revealed.lock();
            let new = revealed.tools.settle(results, self.engine.visibility.deferral.limit());
            (new, revealed.tools.names().len())
        };
        if !new.tools.is_empty() {
            self.events.emit(Some(iteration), || EventKind::ToolsRevealed {
                tools: new.tools,
                evicted: new.evicted,
                total,
            });
        }
    }

    pub(super) fn is_tainted(&self) -> bool {
        self.tainted.load(Ordering::Acquire)
    }

    /// Notes that a model reads content of unknown authors.
    pub(super) fn taint(&self) {
        self.tainted.store(true, Ordering::Release);
    }

    /// Notes whether a model reads content of unknown authors in these results.
    pub(super) fn settle_taint(&self, results: &[ToolResult]) {
        if results.iter().any(|result| result.untrusted) {
            self.taint();
        }
    }

    pub(super) fn identity(&self) -> &Arc<Identity> {
        self.events.identity()
    }

    /// The turn's registry, to be edited.
    pub(super) fn registry(&self) -> &ToolRegistry {
        self.registry.get_or_init(|| Arc::new(ToolRegistry::clone(&self.engine.registry)))
    }

    /// The turn's current tools.
    pub(super) fn registry_now(&self) -> &Arc<ToolRegistry> {
        self.registry.get().unwrap_or(&self.engine.registry)
    }

    /// A copy of the turn's current tools, not shared with code that edits them.
    pub(super) fn registry_copy(&self) -> Arc<ToolRegistry> {
        match self.registry.get() {
            Some(registry) => {
                // The copies of unchanged tools then share one list.
                registry.catalog();
                Arc::new(ToolRegistry::clone(registry))
            }
            None => Arc::clone(&self.engine.registry),
        }
    }

    /// Reports an iteration's offer.
    pub(super) fn report_offered(
        &self,
        iteration: u32,
        composed: &Composition,
        menu: &Menu,
        is_new: bool,
        took: Duration,
    ) {
        for collision in &composed.collisions {
            self.events.emit(Some(iteration), || EventKind::Collision {
                name: collision.name.clone(),
                kept: Arc::clone(&collision.kept),
                dropped: Arc::clone(&collision.dropped),
            });
        }
        let withheld = &composed.withheld;
        let fingerprint = menu.fingerprint();
        let before = self.offered.lock().replace(fingerprint);
        self.events.emit(Some(iteration), || EventKind::ToolsOffered {
            tools: menu.names().cloned().collect(),
            origins: menu.tools().iter().map(|tool| Arc::clone(tool.shared_origin())).collect(),
            deferred: menu.deferred().len(),
            withheld: withheld.len(),
            // Each turn lists them once: a reader of its events knows no other turn.
            withheld_tools: if is_new || before.is_none() {
                withheld.tools_without_change()
            } else {
                Vec::new()
            },
            fingerprint,
            changed: before != Some(fingerprint),
            duration_ms: millis(took),
        });
    }

    /// The facts that decide visibility, for these skills in that iteration.
    pub(super) fn situation(&self, skills: Snapshot, iteration: u32) -> Situation {
        Situation {
            active_skills: skills.active,
            steps: skills.steps,
            roles: Arc::clone(&self.roles),
            roles_by_claims: Arc::clone(&self.roles_by_claims),
            tenant: self.identity().tenant.clone(),
            principal: self.identity().principal.clone(),
            personality: Arc::clone(&self.personality),
            reveal: self.reveal,
            iteration,
            tainted: self.is_tainted(),
        }
    }

    /// The client as the servers of an iteration see it.
    pub(super) fn ruled_client(&self, skills: &Snapshot, iteration: u32) -> Option<ClientHandle> {
        let client = self.client.as_ref()?;
        let situation = self.situation(skills.clone(), iteration);
        let wait = Arc::<ClientWait>::default();
        let ruled = RuledClient::new(client, &self.engine.visibility, situation, wait);
        Some(ClientHandle(Arc::new(ruled)))
    }

    /// Reports the changes of skills, in an iteration or, with 0, before the first.
    pub(super) fn report_skills(&self, iteration: u32) {
        let iteration = (iteration > 0).then_some(iteration);
        for event in self.active_skills.take_unreported() {
            self.events.emit(iteration, || self.redacted(event));
        }
    }

    fn redacted(&self, event: EventKind) -> EventKind {
        let redacted = |text: &str| Arc::from(self.engine.redactor.text(text));
        match event {
            EventKind::StepSkipped { skill, step, reason, held } => {
                EventKind::StepSkipped { skill, step, reason: redacted(&reason), held }
            }
            EventKind::SkillReloadFailed { problem } => {
                EventKind::SkillReloadFailed { problem: redacted(&problem) }
            }
            event => event,
        }
    }
}
