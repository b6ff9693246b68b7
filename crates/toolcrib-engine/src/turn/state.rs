use std::{path::Path, sync::Arc};

use toolcrib_core::{CancellationToken, EventKind, Identity, RunEvents, SkillId};

use crate::{compose::Situation, parts::EngineParts, skills::ActiveSkills};

/// What a turn and its iterations share.
pub(super) struct TurnState {
    pub(super) engine: Arc<EngineParts>,
    pub(super) events: Arc<RunEvents>,
    pub(super) active_skills: Arc<ActiveSkills>,
    pub(super) roles: Arc<[Arc<str>]>,
    pub(super) cancellation: CancellationToken,
    pub(super) working_dir: Arc<Path>,
}

impl TurnState {
    pub(super) fn identity(&self) -> &Arc<Identity> {
        self.events.identity()
    }

    /// What decides on visibility, under these skills.
    pub(super) fn situation(&self, active_skills: Arc<[SkillId]>) -> Situation {
        Situation {
            active_skills,
            roles: Arc::clone(&self.roles),
            tenant: self.identity().tenant.clone(),
        }
    }

    /// Says which skills became active, in an iteration or, with 0, before the first.
    pub(super) fn report_activations(&self, iteration: u32) {
        let iteration = (iteration > 0).then_some(iteration);
        for (skill, by) in self.active_skills.take_unreported() {
            self.events.emit(iteration, || EventKind::SkillActivated { skill, by });
        }
    }
}
