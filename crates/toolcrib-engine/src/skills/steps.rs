//! Steps: the order in which a skill wants its tools called.

use std::{fmt::Write as _, sync::Arc};

use toolcrib_core::{Catalog, SkillId, ToolName};

use super::{SKIP_STEP, Skill, Skills, StepsAt};

/// One step of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The tool whose result completes it.
    pub tool: ToolName,
    /// What the model reads about it, such as what to look at.
    pub note: Option<Arc<str>>,
}

impl Step {
    /// A step without a note.
    pub fn new(tool: ToolName) -> Self {
        Self { tool, note: None }
    }

    /// Says what the model reads about it.
    #[must_use]
    pub fn note(mut self, note: impl Into<Arc<str>>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// What becomes of a step that the model asks to skip. That it asked, and why, is on record in
/// either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnSkip {
    /// The next step is the current one. The default.
    #[default]
    Advance,
    /// It stays the current one: only the host can skip it.
    Hold,
}

/// Steps in order. While they are not done, of all their tools only that of the current step is
/// offered, also while another skill is the one activated last. While their own is, a result of that
/// tool that is no error completes the step. One that stands in two steps is offered in both.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    steps: Vec<Step>,
    pub(crate) on_skip: OnSkip,
    /// What holds the others back, and what it says at each step and behind the last: made once,
    /// so that a menu that stays as it is costs nothing.
    gate: Arc<str>,
    reasons: Vec<Arc<str>>,
}

impl PartialEq for Steps {
    /// The rest follows from these and the skill.
    fn eq(&self, other: &Self) -> bool {
        self.steps == other.steps && self.on_skip == other.on_skip
    }
}

impl Eq for Steps {}

impl Steps {
    /// `None` when there are no steps.
    pub(super) fn new(skill: &SkillId, steps: Vec<Step>, on_skip: OnSkip) -> Option<Self> {
        if steps.is_empty() {
            return None;
        }
        let total = steps.len();
        let at = |(position, step): (usize, &Step)| {
            Arc::from(format!("step {} of {total} is `{}`", position + 1, step.tool))
        };
        let mut reasons: Vec<Arc<str>> = steps.iter().enumerate().map(at).collect();
        reasons.push(format!("all {total} steps are done; reading the skill begins anew").into());
        Some(Self { steps, on_skip, gate: format!("steps of {skill}").into(), reasons })
    }

    pub(crate) fn as_slice(&self) -> &[Step] {
        &self.steps
    }

    /// The step at a position; `None` behind the last.
    pub(crate) fn at(&self, position: usize) -> Option<&Step> {
        self.steps.get(position)
    }

    /// Takes the tools of all steps out of what is offered, but for that of the current one.
    pub(crate) fn narrow(&self, position: usize, catalog: &mut Catalog) {
        // There is a reason for each position.
        let reason = self.reasons.get(position.min(self.steps.len()));
        let reason = reason.map(Arc::clone).unwrap_or_default();
        catalog.hold_back_where(&self.gate, |tool| {
            self.is_of_another(position, tool.name()).then(|| Arc::clone(&reason).into())
        });
    }

    /// Whether a tool belongs to steps, and not to the current one.
    pub(crate) fn is_of_another(&self, position: usize, tool: &ToolName) -> bool {
        let is_current = self.at(position).is_some_and(|step| step.tool == *tool);
        !is_current && self.steps.iter().any(|step| step.tool == *tool)
    }

    /// What holds tools back in their name.
    pub(crate) fn gate(&self) -> &str {
        &self.gate
    }

    /// What a model reads of them beside the body.
    pub(super) fn in_words(&self) -> String {
        let mut text = String::from(
            "Steps, in this order. Of their tools only that of the current step is offered, and its \
             result completes the step:",
        );
        for (position, step) in self.steps.iter().enumerate() {
            let _ = write!(text, "\n{}. {}", position + 1, line(step));
        }
        let _ = match self.on_skip {
            OnSkip::Advance => {
                write!(text, "\nTo leave a step out, call `{SKIP_STEP}` and say why.")
            }
            OnSkip::Hold => write!(
                text,
                "\nNo step may be left out. If one cannot be done, call `{SKIP_STEP}` and say why."
            ),
        };
        text
    }

    /// What a model reads of where it stands.
    pub(super) fn place(&self, position: usize) -> String {
        match self.at(position) {
            Some(step) => {
                format!("Step {} of {} is next: {}", position + 1, self.steps.len(), line(step))
            }
            None => "All steps are done.".to_owned(),
        }
    }
}

impl Skills {
    /// The skills whose steps hold tools back, the latest first, and how many of them are done. A skill that
    /// rests holds too while its steps are not done, or activating another one would be the way around
    /// them.
    pub(crate) fn steps_that_hold(
        &self,
        active: &[SkillId],
        steps: &[StepsAt],
    ) -> impl Iterator<Item = (&Skill, &Steps, usize)> {
        let is_latest = |at: &&StepsAt| active.last() == Some(&at.skill);
        let found = move |at: &StepsAt| {
            let skill = self.get(&at.skill)?;
            Some((skill, skill.steps.as_ref()?, at.position))
        };
        let latest = steps.iter().filter(is_latest).filter_map(found);
        let resting = steps.iter().filter(move |at| !is_latest(at)).filter_map(found);
        latest.chain(resting.filter(|(_, steps, position)| steps.at(*position).is_some()))
    }

    /// What activating a skill makes of its steps: those that are not under way begin.
    pub(crate) fn begin_steps(&self, skill: &SkillId, steps: &mut Vec<StepsAt>) {
        let of_skill = self.get(skill).and_then(|skill| skill.steps.as_ref());
        let Some(of_skill) = of_skill else { return };
        let is_under_way = |at: &StepsAt| at.skill == *skill && of_skill.at(at.position).is_some();
        if !steps.iter().any(is_under_way) {
            steps.retain(|at| at.skill != *skill);
            steps.push(StepsAt { skill: skill.clone(), position: 0 });
        }
    }
}

fn line(step: &Step) -> String {
    match &step.note {
        Some(note) => format!("`{}`: {note}", step.tool),
        None => format!("`{}`", step.tool),
    }
}

/// Where a turn stands in the steps of the skill that it activated last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentStep {
    /// The skill.
    pub skill: SkillId,
    /// Which step, from 1.
    pub number: usize,
    /// How many there are.
    pub total: usize,
    /// The step itself.
    pub step: Step,
}
