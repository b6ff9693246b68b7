//! What a host does with the skills of a turn, beside the model.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{ActivatedBy, DeactivatedBy, InvalidTool, SkillId, Tool};

use super::{Turn, TurnError, admission::may_activate, state::TurnState};
use crate::{
    parts::EngineParts,
    skills::{
        ActiveSkills, CurrentStep, Skill, Skills, SkillsProvider, Snapshot, read_skill_as_judged,
    },
    sources::Source,
};

/// The tools that stand for skills in a turn, and of which skills they tell.
pub(super) struct OwnTools {
    source: Source,
    /// `read_skill` as rules see it; `None` where no rule speaks of it, so that it always tells of all
    /// skills.
    judged: Option<&'static Tool>,
    told: Vec<Arc<Skill>>,
    /// Whether rules let `read_skill` be offered.
    is_offered: bool,
}

impl OwnTools {
    pub(super) fn new(
        engine: &EngineParts,
        active: &Arc<ActiveSkills>,
    ) -> Result<Self, InvalidTool> {
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

    /// Tells of those skills that rules let be read now, and of no other: neither id nor description
    /// of a skill is known to whoever may not activate it.
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
        // What is withheld as a whole shows nothing, and is explained as any other tool.
        let named = if is_offered { &told } else { &all };
        // What could be made of all skills can be made of some.
        if let Ok(provider) = SkillsProvider::new(&state.active_skills, named, &told) {
            self.source = Source::needed(Arc::new(provider));
            self.told = told;
            self.is_offered = is_offered;
        }
    }
}

impl Turn {
    /// See [`OwnTools::tell`].
    pub(super) fn tell_of_skills(&mut self, skills: &Snapshot) {
        if let Some(own) = &mut self.own {
            own.tell(&self.state, skills, self.iteration);
        }
    }

    /// The skills that this turn may activate, as they were when it began.
    pub fn skills(&self) -> &Arc<Skills> {
        self.state.active_skills.skills()
    }

    /// The active skills, the last activated last. What `read_skill` activated counts at once
    /// here, and from the next iteration for the menu.
    pub fn active_skills(&self) -> Arc<[SkillId]> {
        self.state.active_skills.now()
    }

    /// Activates a skill, or makes an active one the last activated. It counts from the next
    /// iteration. The model is told nothing: give it the skill's
    /// [instructions](crate::Skill::instructions) where it should follow them.
    ///
    /// It is judged as a call of `read_skill` in this turn, like the
    /// [skills of the options](crate::TurnOptions::skills).
    ///
    /// # Errors
    /// [`TurnError::UnknownSkill`], [`TurnError::SkillOutOfReach`], [`TurnError::SkillRefused`].
    pub fn activate_skill(&mut self, skill: &SkillId) -> Result<(), TurnError> {
        let state = &self.state;
        let situation = state.situation(state.active_skills.snapshot(), self.iteration.max(1));
        may_activate(&state.engine, self.skills(), situation.facts(), skill)?;
        self.unasked.push(skill.clone());
        self.state.active_skills.activate(skill, ActivatedBy::Caller);
        self.state.report_skills(self.iteration);
        Ok(())
    }

    /// Ends the activity of a skill, from the next iteration on, and forgets where its steps stood.
    /// Whether it was active.
    pub fn deactivate_skill(&mut self, skill: &SkillId) -> bool {
        let was_active = self.state.active_skills.deactivate(skill, DeactivatedBy::Caller);
        self.state.report_skills(self.iteration);
        was_active
    }

    /// The current step of the skill activated last; `None` where that has none, or all are done.
    pub fn current_step(&self) -> Option<CurrentStep> {
        self.state.active_skills.current_step()
    }

    /// Leaves the [current step](Self::current_step) out, also where the skill lets the model skip
    /// none. It counts from the next iteration. Whether there was one.
    pub fn skip_step(&mut self, reason: impl Into<Arc<str>>) -> bool {
        let skipped = self.state.active_skills.skip(reason.into());
        self.state.report_skills(self.iteration);
        skipped
    }

    /// Says which steps of active skills are not done: `skill.steps_unfinished`, once. For loops that
    /// write a last event of their own; otherwise dropping the turn says it. A turn that is not
    /// offered `read_skill` serves single calls, and says nothing.
    pub fn end(&mut self) {
        if self.own.is_some() {
            self.state.active_skills.end();
            self.state.report_skills(self.iteration);
        }
    }
}
