//! The active skills of one turn, and their current steps.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{
    ActivatedBy, DeactivatedBy, EventKind, SkillId, ToolContext, ToolName, ToolResult,
};

use super::{CurrentSkillStep, OnSkip, Skills, steps::Steps};

/// The active skills of one turn, shared with its tools.
#[derive(Debug)]
pub(crate) struct ActiveSkills {
    skills: Arc<Skills>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last activated last.
    active: Arc<[SkillId]>,
    /// The positions of active skills that have steps.
    steps: Vec<StepPosition>,
    /// The requests of a batch's calls, in the order in which they happened to run.
    requested: Vec<PendingRequest>,
    unreported: Vec<EventKind>,
}

/// A call's request. Concurrent iterations may use the same call id for different calls.
#[derive(Debug)]
struct PendingRequest {
    iteration: u32,
    call_id: Arc<str>,
    request: Request,
}

/// The kinds of requests by a model.
#[derive(Debug)]
pub(crate) enum Request {
    Activate(SkillId),
    Deactivate(SkillId),
    Skip { reason: Arc<str> },
}

/// A consistent snapshot of skills and steps, for composing a menu.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The active skills, the last activated last.
    pub(crate) active: Arc<[SkillId]>,
    /// The positions of those that have steps.
    pub(crate) steps: Arc<[StepPosition]>,
}

impl Snapshot {
    /// The position in the steps of the skill activated last, if it has any; also after the last
    /// step.
    pub(crate) fn at(&self) -> Option<StepPosition> {
        let latest = self.active.last()?;
        self.steps.iter().find(|at| at.skill == *latest).cloned()
    }
}

/// The number of completed steps of a skill. Part of a menu's snapshot: calls made from that menu
/// act on the step after them and on no later one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StepPosition {
    pub(crate) skill: SkillId,
    pub(crate) position: usize,
}

impl ActiveSkills {
    pub(crate) fn new(skills: Arc<Skills>) -> Self {
        Self { skills, state: Mutex::default() }
    }

    /// All skills of the turn.
    pub(crate) fn skills(&self) -> &Arc<Skills> {
        &self.skills
    }

    /// The active skills, the last activated last.
    pub(crate) fn now(&self) -> Arc<[SkillId]> {
        Arc::clone(&self.lock().active)
    }

    /// Makes a skill the last activated one. Activating the one that already is the last changes
    /// nothing, except that completed steps begin again.
    pub(crate) fn activate(&self, skill: &SkillId, by: ActivatedBy) {
        let mut state = self.lock();
        self.skills.begin_steps(skill, &mut state.steps);
        if state.active.last() == Some(skill) {
            return;
        }
        state.active =
            state.active.iter().filter(|id| *id != skill).chain([skill]).cloned().collect();
        state.unreported.push(EventKind::SkillActivated { skill: skill.clone(), by });
    }

    /// Deactivates a skill and drops its position in its steps. Returns whether it was active.
    pub(crate) fn deactivate(&self, skill: &SkillId, by: DeactivatedBy) -> bool {
        let mut state = self.lock();
        if !state.active.contains(skill) {
            return false;
        }
        state.active = state.active.iter().filter(|id| *id != skill).cloned().collect();
        self.end_steps(&mut state, |id| id == skill);
        state.unreported.push(EventKind::SkillDeactivated { skill: skill.clone(), by });
        true
    }

    /// Reports the incomplete steps of all skills whose steps have begun.
    pub(crate) fn end(&self) {
        self.end_steps(&mut self.lock(), |_| true);
    }

    fn end_steps(&self, state: &mut State, ends: impl Fn(&SkillId) -> bool) {
        let (ended, going_on) = std::mem::take(&mut state.steps)
            .into_iter()
            .partition::<Vec<_>, _>(|at| ends(&at.skill));
        state.steps = going_on;
        for StepPosition { skill, position } in ended {
            let remaining: Vec<_> = self
                .steps_of(&skill)
                .into_iter()
                .flat_map(|steps| steps.as_slice().iter().skip(position))
                .map(|step| step.tool.clone())
                .collect();
            if !remaining.is_empty() {
                state.unreported.push(EventKind::StepsUnfinished { skill, remaining });
            }
        }
    }

    /// The active skills and their positions in their steps.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        // Most skills have none, and this way an empty list is not allocated.
        let steps =
            if state.steps.is_empty() { Arc::default() } else { state.steps.as_slice().into() };
        Snapshot { active: Arc::clone(&state.active), steps }
    }

    fn latest_at(&self) -> Option<StepPosition> {
        self.lock().latest_at()
    }

    /// The model's text about a skill's current step; `None` before the first step, after the last,
    /// and without steps.
    pub(super) fn place(&self, skill: &SkillId) -> Option<String> {
        let done = self.lock().done_of(skill).filter(|done| *done > 0)?;
        let steps = self.steps_of(skill)?;
        steps.at(done).map(|_| steps.place(done))
    }

    /// The effect of skipping the current step, and the model's text about the step after that;
    /// `None` without a current step.
    pub(super) fn what_skipping_does(&self) -> Option<(OnSkip, String)> {
        let at = self.latest_at()?;
        let steps = self.steps_of(&at.skill)?;
        steps.at(at.position)?;
        let then = match steps.on_skip {
            OnSkip::Advance => at.position + 1,
            OnSkip::Hold => at.position,
        };
        Some((steps.on_skip, steps.place(then)))
    }

    /// The turn's current step.
    pub(crate) fn current_step(&self) -> Option<CurrentSkillStep> {
        let at = self.latest_at()?;
        let steps = self.steps_of(&at.skill)?;
        let (number, total) = (at.position + 1, steps.as_slice().len());
        let step = steps.at(at.position)?.clone();
        Some(CurrentSkillStep { skill: at.skill, number, total, step })
    }

    /// Skips the current step, whatever the skill's setting. Returns whether there was one.
    pub(crate) fn skip(&self, reason: Arc<str>) -> bool {
        let Some(at) = self.latest_at() else { return false };
        self.pass(&at, |skill, step, _| EventKind::StepSkipped { skill, step, reason, held: false })
    }

    /// Records a call's request; see [`settle`](Self::settle).
    pub(super) fn request(&self, cx: &ToolContext, request: Request) {
        self.lock().requested.push(PendingRequest {
            iteration: cx.iteration(),
            call_id: Arc::clone(cx.call_id()),
            request,
        });
    }

    /// Applies the requests of a batch's calls, and completes the step that the batch could see, in
    /// call order: which call ran first is random, and the result must not be. Requests of failed
    /// calls are discarded.
    pub(crate) fn settle(&self, iteration: u32, at: Option<&StepPosition>, results: &[ToolResult]) {
        for result in results {
            if let Some(at) = at.filter(|_| result.is_ok() && !result.abandoned)
                && self.tool_at(at).is_some_and(|tool| *tool == *result.name)
            {
                self.advance(at);
            }
            while let Some(request) = self.take_requested(iteration, &result.call_id) {
                if result.is_ok() {
                    self.fulfil(request, at);
                }
            }
        }
    }

    /// Applies a call of the turn's earlier process that succeeded, as [`settle`](Self::settle) did
    /// there.
    pub(crate) fn replay(&self, tool: &str, request: Option<Request>) {
        let at = self.latest_at();
        if let Some(at) = &at
            && self.tool_at(at).is_some_and(|expected| *expected == *tool)
        {
            self.advance(at);
        }
        if let Some(request) = request {
            self.fulfil(request, at.as_ref());
        }
    }

    fn fulfil(&self, request: Request, at: Option<&StepPosition>) {
        match request {
            Request::Activate(skill) => self.activate(&skill, ActivatedBy::ReadSkill),
            Request::Deactivate(skill) => {
                self.deactivate(&skill, DeactivatedBy::DeactivateSkill);
            }
            Request::Skip { reason } => {
                let Some(at) = at else { return };
                match self.steps_of(&at.skill).map(|steps| steps.on_skip) {
                    Some(OnSkip::Advance) => {
                        self.pass(at, |skill, step, _| EventKind::StepSkipped {
                            skill,
                            step,
                            reason,
                            held: false,
                        });
                    }
                    Some(OnSkip::Hold) => {
                        self.lock().unreported.push(EventKind::StepSkipped {
                            skill: at.skill.clone(),
                            step: at.position + 1,
                            reason,
                            held: true,
                        });
                    }
                    None => {}
                }
            }
        }
    }

    fn advance(&self, at: &StepPosition) {
        let Some(tool) = self.tool_at(at) else { return };
        self.pass(at, |skill, step, total| EventKind::StepAdvanced { skill, step, total, tool });
    }

    /// Advances past a step, if it is still the current one of its skill.
    fn pass(
        &self,
        at: &StepPosition,
        event: impl FnOnce(SkillId, usize, usize) -> EventKind,
    ) -> bool {
        let total = self.steps_of(&at.skill).map_or(0, |steps| steps.as_slice().len());
        let mut state = self.lock();
        let stands = state.steps.iter_mut().find(|stands| stands.skill == at.skill);
        let Some(StepPosition { position: done, .. }) = stands else { return false };
        if *done != at.position || *done >= total {
            return false;
        }
        *done += 1;
        let number = *done;
        state.unreported.push(event(at.skill.clone(), number, total));
        true
    }

    fn tool_at(&self, at: &StepPosition) -> Option<ToolName> {
        self.steps_of(&at.skill)?.at(at.position).map(|step| step.tool.clone())
    }

    fn steps_of(&self, skill: &SkillId) -> Option<&Steps> {
        self.skills.get(skill)?.steps.as_ref()
    }

    fn take_requested(&self, iteration: u32, call_id: &str) -> Option<Request> {
        let mut state = self.lock();
        let at = state.requested.iter().position(|requested| {
            requested.iteration == iteration && *requested.call_id == *call_id
        })?;
        Some(state.requested.remove(at).request)
    }

    /// Records events to be reported.
    pub(crate) fn report(&self, events: impl IntoIterator<Item = EventKind>) {
        self.lock().unreported.extend(events);
    }

    /// The events since the last call of this function.
    pub(crate) fn take_unreported(&self) -> Vec<EventKind> {
        std::mem::take(&mut self.lock().unreported)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under this lock can panic half-way.
        self.state.lock()
    }
}

impl State {
    fn latest_at(&self) -> Option<StepPosition> {
        let latest = self.active.last()?;
        Some(StepPosition { skill: latest.clone(), position: self.done_of(latest)? })
    }

    fn done_of(&self, skill: &SkillId) -> Option<usize> {
        self.steps.iter().find(|at| at.skill == *skill).map(|at| at.position)
    }
}
