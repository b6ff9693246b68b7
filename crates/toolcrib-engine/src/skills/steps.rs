//! Steps: the required order of a skill's tool calls.

use std::{fmt::Write as _, sync::Arc};

use toolcrib_core::{SkillId, Tool, ToolName, WithheldByProvider};

use super::{Skill, Skills, StepPosition};

/// The name of the tool that requests skipping a step.
pub const SKIP_STEP: &str = "skip_step";

/// One step of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillStep {
    /// The tool whose result completes it.
    pub tool: ToolName,
    /// The model's text about it, such as what to check.
    pub note: Option<Arc<str>>,
}

impl SkillStep {
    /// A step without a note.
    pub fn new(tool: ToolName) -> Self {
        Self { tool, note: None }
    }

    /// Sets the model's text about it.
    #[must_use]
    pub fn note(mut self, note: impl Into<Arc<str>>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// The effect of a model's request to skip a step. The request and its reason are recorded in
/// either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnSkip {
    /// The next step becomes the current one. The default.
    #[default]
    Advance,
    /// The step stays the current one: only the host can skip it.
    Hold,
}

/// Steps in order. Until they are completed, of all their tools only that of the current step is
/// offered, also while another skill is the one activated last. While their own skill is, a
/// successful result of that tool completes the step. A tool of two steps is offered in both.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    steps: Vec<SkillStep>,
    pub(crate) on_skip: OnSkip,
    /// The name that withholds the others, and the reason at each step and after the last: created
    /// once, so that an unchanged menu costs nothing.
    gate: Arc<str>,
    reasons: Vec<Arc<str>>,
}

impl PartialEq for Steps {
    /// The other fields follow from these and the skill.
    fn eq(&self, other: &Self) -> bool {
        self.steps == other.steps && self.on_skip == other.on_skip
    }
}

impl Eq for Steps {}

impl Steps {
    /// `None` without steps.
    pub(super) fn new(skill: &SkillId, steps: Vec<SkillStep>, on_skip: OnSkip) -> Option<Self> {
        if steps.is_empty() {
            return None;
        }
        let total = steps.len();
        let at = |(position, step): (usize, &SkillStep)| {
            Arc::from(format!("step {} of {total} is `{}`", position + 1, step.tool))
        };
        let mut reasons: Vec<Arc<str>> = steps.iter().enumerate().map(at).collect();
        reasons.push(format!("all {total} steps are done; reading the skill begins again").into());
        Some(Self { steps, on_skip, gate: format!("steps of {skill}").into(), reasons })
    }

    pub(crate) fn as_slice(&self) -> &[SkillStep] {
        &self.steps
    }

    /// The step at a position; `None` after the last.
    pub(crate) fn at(&self, position: usize) -> Option<&SkillStep> {
        self.steps.get(position)
    }

    /// The tool as withheld, if it belongs to steps and not to the current one.
    pub(crate) fn withhold(&self, position: usize, tool: &Tool) -> Option<WithheldByProvider> {
        if !self.is_of_another(position, tool.name()) {
            return None;
        }
        // There is a reason for each position.
        let reason = self.reasons.get(position.min(self.steps.len()));
        let reason = reason.map(Arc::clone).unwrap_or_default().into();
        Some(WithheldByProvider { tool: tool.clone(), gate: Arc::clone(&self.gate), reason })
    }

    /// Whether a tool belongs to steps, and not to the current one.
    pub(crate) fn is_of_another(&self, position: usize, tool: &ToolName) -> bool {
        let is_current = self.at(position).is_some_and(|step| step.tool == *tool);
        !is_current && self.steps.iter().any(|step| step.tool == *tool)
    }

    /// The name of the gate that withholds tools.
    pub(crate) fn gate(&self) -> &str {
        &self.gate
    }

    /// The model's text about the steps, in addition to the body.
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
                write!(text, "\nTo skip a step, call `{SKIP_STEP}` and say why.")
            }
            OnSkip::Hold => write!(
                text,
                "\nNo step may be skipped. If one cannot be done, call `{SKIP_STEP}` and say why."
            ),
        };
        text
    }

    /// The model's text about the current step.
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
    /// The skills whose steps withhold tools, the latest first, with the number of completed steps.
    /// A skill that is not the latest also counts while its steps are incomplete; otherwise
    /// activating another one would bypass them.
    pub(crate) fn steps_that_hold(
        &self,
        active: &[SkillId],
        steps: &[StepPosition],
    ) -> impl Iterator<Item = (&Skill, &Steps, usize)> {
        let is_latest = |at: &&StepPosition| active.last() == Some(&at.skill);
        let found = move |at: &StepPosition| {
            let skill = self.get(&at.skill)?;
            Some((skill, skill.steps.as_ref()?, at.position))
        };
        let latest = steps.iter().filter(is_latest).filter_map(found);
        let resting = steps.iter().filter(move |at| !is_latest(at)).filter_map(found);
        latest.chain(resting.filter(|(_, steps, position)| steps.at(*position).is_some()))
    }

    /// Begins the steps of an activated skill, unless they are under way.
    pub(crate) fn begin_steps(&self, skill: &SkillId, steps: &mut Vec<StepPosition>) {
        let of_skill = self.get(skill).and_then(|skill| skill.steps.as_ref());
        let Some(of_skill) = of_skill else { return };
        let is_under_way =
            |at: &StepPosition| at.skill == *skill && of_skill.at(at.position).is_some();
        if !steps.iter().any(is_under_way) {
            steps.retain(|at| at.skill != *skill);
            steps.push(StepPosition { skill: skill.clone(), position: 0 });
        }
    }
}

fn line(step: &SkillStep) -> String {
    match &step.note {
        Some(note) => format!("`{}`: {note}", step.tool),
        None => format!("`{}`", step.tool),
    }
}

/// The current step of the skill that the turn activated last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentSkillStep {
    /// The skill.
    pub skill: SkillId,
    /// The number of the step, from 1.
    pub number: usize,
    /// The number of steps.
    pub total: usize,
    /// The step itself.
    pub step: SkillStep,
}
