//! The host's access to the skills of a turn, beside the model's.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{ActivatedBy, DeactivatedBy, InvalidToolError, SkillId, Tool, ToolCall};

use super::{Turn, TurnError, admission::may_activate, state::TurnState};
use crate::{
    parts::EngineParts,
    provider::Source,
    skills::{
        ActiveSkills, CurrentSkillStep, Request, Skill, Skills, SkillsProvider, Snapshot,
        read_skill_as_judged, requested,
    },
};

/// The skill tools of a turn, and the skills that they name.
pub(super) struct SkillTools {
    source: Source,
    /// `read_skill` as rules see it; `None` if no rule applies to it, so that it always names all
    /// skills.
    judged: Option<&'static Tool>,
    told: Vec<Arc<Skill>>,
    /// Whether rules allow offering `read_skill`.
    is_offered: bool,
}

impl SkillTools {
    pub(super) fn new(
        engine: &EngineParts,
        active: &Arc<ActiveSkills>,
    ) -> Result<Self, InvalidToolError> {
        let all: Vec<_> = active.skills().iter_shared().cloned().collect();
        let provider = SkillsProvider::new(active, &all, &all)?;
        let rules = &engine.visibility.policy.rules;
        let judged =
            read_skill_as_judged().filter(|tool| rules.iter().any(|rule| rule.tools.matches(tool)));
        Ok(Self { source: Source::needed(Arc::new(provider)), judged, told: all, is_offered: true })
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Names only the skills that rules allow reading now: a caller that may not activate a skill
    /// sees neither its id nor its description.
    fn tell(&mut self, state: &TurnState, skills: &Snapshot, iteration: u32) {
        let Some(read_skill) = self.judged else { return };
        let situation = state.situation(skills.clone(), iteration);
        let visibility = &state.engine.visibility;
        let is_offered = visibility.judge(read_skill, situation.facts()).offers();
        let may_be_read = |skill: &&Arc<Skill>| {
            let arguments = json!({ "id": skill.id });
            is_offered && visibility.judge_call(read_skill, situation.facts(), &arguments).offers()
        };
        let all: Vec<_> = state.active_skills.skills().iter_shared().cloned().collect();
        let told: Vec<_> = all.iter().filter(may_be_read).cloned().collect();
        if is_offered == self.is_offered && told == self.told {
            return;
        }
        // If the tool as a whole is withheld it shows nothing, and is explained like any other
        // tool.
        let named = if is_offered { &told } else { &all };
        // A tool that could be built with all skills can be built with some.
        if let Ok(provider) = SkillsProvider::new(&state.active_skills, named, &told) {
            self.source = Source::needed(Arc::new(provider));
            self.told = told;
            self.is_offered = is_offered;
        }
    }
}

impl Turn {
    /// See [`SkillTools::tell`].
    pub(super) fn tell_of_skills(&mut self, skills: &Snapshot) {
        if let Some(own) = &mut self.own {
            own.tell(&self.state, skills, self.iteration);
        }
    }

    /// The skills that this turn may activate, as they were when it began.
    pub fn skills(&self) -> &Arc<Skills> {
        self.state.active_skills.skills()
    }

    /// The active skills, the last activated last. An activation by `read_skill` is included at
    /// once here, and applies to the menu from the next iteration on.
    pub fn active_skills(&self) -> Arc<[SkillId]> {
        self.state.active_skills.now()
    }

    /// Activates a skill, or makes an active one the last activated. It applies from the next
    /// iteration on. The model receives no message: send it the skill's
    /// [instructions](crate::Skill::instructions) if it should follow them.
    ///
    /// It is judged as a call of `read_skill` in this turn, like [the skills of the
    /// options](crate::TurnOptions::skills).
    ///
    /// # Errors
    /// [`TurnError::UnknownSkill`], [`TurnError::SkillOutOfReach`], [`TurnError::SkillRefused`].
    pub fn activate_skill(&mut self, skill: impl Into<SkillId>) -> Result<(), TurnError> {
        let skill = &skill.into();
        let state = &self.state;
        let situation = state.situation(state.active_skills.snapshot(), self.iteration.max(1));
        may_activate(&state.engine, self.skills(), situation.facts(), skill, false)?;
        self.unasked.push(skill.clone());
        self.state.active_skills.activate(skill, ActivatedBy::Caller);
        self.state.report_skills(self.iteration);
        Ok(())
    }

    /// Continues a turn that another process began: its number of iterations so far, and those of
    /// its calls that succeeded, in order. The next iteration has the next number. The skills that
    /// the model activated are active again, at the same steps; one that it may not activate any
    /// more is not. All else that the turn had in memory is lost, such as tools that were
    /// registered in it.
    pub fn resume<'a>(
        &mut self,
        iterations: u32,
        succeeded: impl IntoIterator<Item = &'a ToolCall>,
    ) {
        self.iteration = iterations;
        for call in succeeded {
            let request = requested(&call.name, &call.arguments);
            if let Some(Request::Activate(skill)) = &request {
                let state = &self.state;
                let situation = state.situation(state.active_skills.snapshot(), iterations.max(1));
                let facts = situation.facts();
                if may_activate(&state.engine, self.skills(), facts, skill, false).is_err() {
                    continue;
                }
            }
            self.state.active_skills.replay(&call.name, request);
        }
    }

    /// Deactivates a skill, from the next iteration on, and drops its position in its steps.
    /// Returns whether it was active.
    pub fn deactivate_skill(&mut self, skill: &SkillId) -> bool {
        let was_active = self.state.active_skills.deactivate(skill, DeactivatedBy::Caller);
        self.state.report_skills(self.iteration);
        was_active
    }

    /// The current step of the skill activated last; `None` if it has no steps or all are
    /// completed.
    pub fn current_step(&self) -> Option<CurrentSkillStep> {
        self.state.active_skills.current_step()
    }

    /// Skips the [current step](Self::current_step), even if the skill does not allow the model to.
    /// It applies from the next iteration on. Returns whether there was one.
    pub fn skip_step(&mut self, reason: impl Into<Arc<str>>) -> bool {
        let skipped = self.state.active_skills.skip(reason.into());
        self.state.report_skills(self.iteration);
        skipped
    }

    /// Reports the incomplete steps of active skills: `skill.steps_unfinished`, once. For loops
    /// that write a last event themselves; otherwise dropping the turn reports it. A turn that is
    /// not offered `read_skill` serves single calls, and reports nothing.
    pub fn end(&mut self) {
        if self.own.is_some() {
            self.state.active_skills.end();
            self.state.report_skills(self.iteration);
        }
    }
}
