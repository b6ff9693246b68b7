use std::{
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use toolcrib_core::{
    CancellationToken, Digest, EventKind, Identity, RunEvents, ToolRegistry, TurnSignals, millis,
};

use crate::{
    compose::{Composed, Situation},
    halt::Halting,
    parts::EngineParts,
    personality::Personality,
    pipe::CallsMade,
    questions::Questions,
    reliability::Recovery,
    skills::{ActiveSkills, Snapshot},
};

/// What a turn and its iterations share.
pub(super) struct TurnState {
    pub(super) engine: Arc<EngineParts>,
    pub(super) events: Arc<RunEvents>,
    pub(super) active_skills: Arc<ActiveSkills>,
    pub(super) roles: Arc<[Arc<str>]>,
    /// Those of them that claims give.
    pub(super) roles_by_claims: Arc<[Arc<str>]>,
    pub(super) personality: Arc<Personality>,
    pub(super) cancellation: CancellationToken,
    /// Of the turn, not of an iteration: at some doors each call is an iteration of its own.
    pub(super) halting: Halting,
    /// The turn's own registry, once somebody asked for it; until then the baseline is as good.
    pub(super) registry: OnceLock<Arc<ToolRegistry>>,
    /// How its executor ends it.
    pub(super) signals: TurnSignals,
    pub(super) made: CallsMade,
    /// The fingerprint of the menu that was offered last.
    pub(super) offered: Mutex<Option<Digest>>,
    /// Where people are asked; `None` where there is nobody to ask.
    pub(super) questions: Option<Questions>,
    pub(super) working_dir: Arc<Path>,
    /// `None` where nothing is to be done about failures.
    pub(super) recovery: Option<Recovery>,
}

impl TurnState {
    pub(super) fn identity(&self) -> &Arc<Identity> {
        self.events.identity()
    }

    /// The turn's own registry, to be edited.
    pub(super) fn registry(&self) -> &ToolRegistry {
        self.registry.get_or_init(|| Arc::new(ToolRegistry::clone(&self.engine.registry)))
    }

    /// The tools of the turn as they are.
    pub(super) fn registry_now(&self) -> &Arc<ToolRegistry> {
        self.registry.get().unwrap_or(&self.engine.registry)
    }

    /// The tools of the turn as they are, shared with no one who edits them.
    pub(super) fn registry_copy(&self) -> Arc<ToolRegistry> {
        match self.registry.get() {
            Some(registry) => Arc::new(ToolRegistry::clone(registry)),
            None => Arc::clone(&self.engine.registry),
        }
    }

    /// Says what an iteration offers.
    pub(super) fn report_offered(
        &self,
        iteration: u32,
        composed: &Composed,
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
        let Composed { menu, withheld, .. } = composed;
        let fingerprint = menu.fingerprint();
        let before =
            self.offered.lock().unwrap_or_else(PoisonError::into_inner).replace(fingerprint);
        self.events.emit(Some(iteration), || EventKind::ToolsOffered {
            tools: menu.names().cloned().collect(),
            origins: menu.tools().iter().map(|tool| Arc::clone(tool.shared_origin())).collect(),
            withheld: withheld.len(),
            withheld_tools: if is_new { withheld.not_offered() } else { Vec::new() },
            fingerprint,
            changed: before != Some(fingerprint),
            duration_ms: millis(took),
        });
    }

    /// What decides on visibility, under these skills in that iteration.
    pub(super) fn situation(&self, skills: Snapshot, iteration: u32) -> Situation {
        Situation {
            active_skills: skills.active,
            steps: skills.steps,
            roles: Arc::clone(&self.roles),
            roles_by_claims: Arc::clone(&self.roles_by_claims),
            tenant: self.identity().tenant.clone(),
            principal: self.identity().principal.clone(),
            personality: Arc::clone(&self.personality),
            iteration,
        }
    }

    /// Says what became of skills, in an iteration or, with 0, before the first.
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
