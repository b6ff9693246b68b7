//! A run: one message up to the answer. The loop is the engine's; the steps of a run are one
//! function each: `run → drive → (step → ask)* → ask_without_calls`.

mod beginning;
mod call_recorder;
mod child;
mod compaction;
mod empty_answer;
mod guard;
mod last_notice;
mod model_loop;
mod parked;
pub(crate) mod parts;
mod pending_usage;
mod prefix;
mod recording;
mod recover;
mod refused_images;
mod report;
mod request;
mod sanitize;
mod spending;
mod trace;
mod transcript;

use std::{
    future::IntoFuture,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use toolcrib_core::{
    Event, EventStream, FENCE_NOTICE, Identity, Message, SkillId, Subscription, UnknownEventError,
    Usage,
};
use toolcrib_engine::{Skills, Turn, TurnEnd};

use self::{
    beginning::Beginning, child::CHILD_NOTICE, model_loop::ModelLoop, parts::AgentParts,
    prefix::Prefix, recording::Recording, report::Report, transcript::Transcript,
};
use crate::{
    models::Models,
    options::RunOptions,
    outcome::{EndReason, RunEnd, RunError, RunOutcome},
    session::InterruptedTurn,
};

/// A prepared run: subscribe to it, then await it.
#[must_use = "a run does nothing until it is awaited"]
pub struct Run {
    agent: Arc<AgentParts>,
    /// `None` resumes the interrupted turn of the session.
    message: Option<Arc<str>>,
    options: RunOptions,
}

impl Run {
    pub(crate) fn new(
        agent: Arc<AgentParts>,
        message: Option<Arc<str>>,
        options: RunOptions,
    ) -> Self {
        Self { agent, message, options }
    }

    /// This run's events as a queue that ends with the run; see
    /// [`Events::stream`](toolcrib_core::Events::stream).
    pub fn events(&self) -> EventStream {
        self.options.turn.events.stream()
    }

    /// Subscribes to this run only; see [`Events::on`](toolcrib_core::Events::on).
    ///
    /// # Errors
    /// [`UnknownEventError`] if no event matches.
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Subscription, UnknownEventError> {
        self.options.turn.events.on(pattern, listener)
    }
}

impl IntoFuture for Run {
    type Output = RunOutcome;
    type IntoFuture = BoxFuture<'static, RunOutcome>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { run(&self.agent, self.message, self.options).await })
    }
}

toolcrib_core::__internal::debug_fields!(Run { options, .. });

/// Runs one message to its end, or the interrupted turn of a session.
async fn run(
    agent: &Arc<AgentParts>,
    message: Option<Arc<str>>,
    options: RunOptions,
) -> RunOutcome {
    let began = Instant::now();
    let timeout = options.turn_timeout.unwrap_or(agent.settings.turn_timeout);
    let mut beginning = match Beginning::of(agent, message, options).await {
        Ok(beginning) => beginning,
        Err(error) => return never_began(error, Vec::new(), began),
    };
    let (turn, models) = match beginning.turn(agent).await {
        Ok(begun) => begun,
        Err(error) => return never_began(error, beginning.messages, began),
    };
    let mut state = RunState::new(agent, beginning, turn, models, began);
    let mut end = state.drive_within(timeout).await;
    end = end.unless_cut_off(state.model_loop.transcript.stop);
    state.record_end(&mut end).await;
    state.settle(end)
}

/// The system text of a run; it does not change until the run ends.
fn system_text(known: &Skills, system: &str, is_child: bool, skills: &[SkillId]) -> Arc<str> {
    let mut parts = vec![system.trim().to_owned(), FENCE_NOTICE.to_owned()];
    parts.extend(is_child.then(|| CHILD_NOTICE.to_owned()));
    // A skill that is named twice is active once, at its last position.
    let last = |at: usize, id: &SkillId| !skills.iter().skip(at + 1).any(|later| later == id);
    let active = skills
        .iter()
        .enumerate()
        .filter(|(at, id)| last(*at, id))
        .filter_map(|(_, id)| known.get(id));
    parts.extend(active.map(|skill| {
        format!("Skill `{}` is active. Its instructions:\n\n{}", skill.id, skill.instructions())
    }));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n").into()
}

/// The outcome of a run whose turn could not begin.
fn never_began(error: RunError, messages: Vec<Message>, began: Instant) -> RunOutcome {
    RunOutcome {
        turn_id: Arc::default(),
        end_reason: EndReason::Failed,
        answer: None,
        error: Some(error),
        iterations: 0,
        tool_calls: Vec::new(),
        usage: Usage::NOTHING,
        stop: None,
        menus: Vec::new(),
        image_notices: Vec::new(),
        messages: Arc::new(messages),
        duration: began.elapsed(),
    }
}

/// The state of one run.
struct RunState<'a> {
    turn: Turn,
    model_loop: ModelLoop<'a>,
    /// The iterations left.
    iterations: u32,
    /// The named identity of the conversation, if any.
    conversation: Option<Arc<Identity>>,
}

impl<'a> RunState<'a> {
    fn new(
        agent: &'a AgentParts,
        beginning: Beginning,
        turn: Turn,
        models: &'a Models,
        began: Instant,
    ) -> Self {
        let Beginning { message, messages, recording, interrupted, spending, .. } = beginning;
        let Beginning { skills, child, .. } = beginning;
        let personality = Arc::clone(turn.personality());
        let system = personality.system.as_ref().unwrap_or(&agent.settings.system);
        let system = system_text(turn.skills(), system, child.is_some(), &skills);
        let conversation = beginning.is_named.then(|| Arc::clone(turn.events().identity()));
        let (conversations, whose) = (&agent.conversations, conversation.as_deref());
        let prefix = Prefix::new(conversations, whose, &system, &messages, recording.as_ref());
        let report = Report::new(&turn, began, spending);
        let recovery = turn.recovery().clone();
        let mut transcript =
            Transcript::new(agent, models, system, messages, report, recovery, prefix);
        let model = models.first().name();
        if let Some(mut recording) = recording {
            if interrupted.is_none() {
                recording.turn_began(&message, model, &skills);
            }
            transcript.record_in(recording);
        }
        let message = agent.engine.redactor().text(&message);
        transcript.report.began(&message, model, &personality.id);
        transcript.attach(turn.attachments());
        let of_child = child.and_then(|child| child.max_iterations);
        let iterations = of_child.unwrap_or(agent.settings.max_iterations);
        let model_loop = ModelLoop::new(transcript, beginning.tool_choices);
        let mut state = Self { turn, model_loop, iterations, conversation };
        if let Some(interrupted) = interrupted {
            state.resume(interrupted);
        }
        state
    }

    /// Continues an interrupted turn. One that ended with an answer has no iteration left to run.
    fn resume(&mut self, mut interrupted: InterruptedTurn) {
        let responses = interrupted.responses;
        self.model_loop.end = interrupted.answer.take().map(|answer| {
            let is_last = responses > self.iterations;
            let reason = if is_last { EndReason::MaxIterations } else { EndReason::Answered };
            RunEnd::answered(reason, answer)
        });
        // An iteration whose calls have no results yet goes on.
        let iterations = responses - u32::from(!interrupted.calls.is_empty()).min(responses);
        self.turn.resume(iterations, &interrupted.succeeded);
        self.iterations = self.iterations.saturating_sub(iterations);
        if self.iterations == 0 {
            self.iterations = 1;
            self.model_loop.wraps_up();
        }
        self.model_loop.resume(interrupted);
    }

    /// Drives the run within a timeout, which ends it as cancellation does: no step is cut off in
    /// the middle.
    async fn drive_within(&mut self, timeout: Duration) -> RunEnd {
        if let Some(answered) = self.model_loop.end.take() {
            return answered;
        }
        let cancellation = self.turn.cancellation().clone();
        let mut driving = std::pin::pin!(self.drive());
        tokio::select! {
            biased;
            end = &mut driving => return end,
            () = sleep(timeout) => cancellation.cancel(),
        }
        match driving.await {
            end if end.end_reason == EndReason::Cancelled => RunEnd::timed_out(timeout),
            end => end,
        }
    }

    /// Runs until the model answers, or no iterations are left.
    async fn drive(&mut self) -> RunEnd {
        let end = self.turn.drive(&mut self.model_loop, self.iterations).await;
        match (end, self.model_loop.end.take()) {
            (TurnEnd::Failed(error), _) => RunError::from(&error).into(),
            (_, Some(end)) => end,
            // Acked by a middleware.
            (TurnEnd::Acked, None) => {
                RunEnd::answered(EndReason::Answered, self.model_loop.transcript.last_text())
            }
            (TurnEnd::Nacked(error), None) => {
                RunError::new(RunError::TURN_FAILED, error.to_string()).into()
            }
            _ => RunEnd::cancelled(),
        }
    }

    /// Writes the end to the session. A run whose end is not recorded has failed.
    async fn record_end(&mut self, end: &mut RunEnd) {
        if let Some(recording) = &self.model_loop.transcript.recording
            && self.turn.is_tainted()
        {
            recording.session.taint();
        }
        // Its events belong to the trace.
        self.turn.end();
        let transcript = &mut self.model_loop.transcript;
        transcript.report.add_children();
        transcript.report.iterations = self.turn.iterations();
        transcript.report.spending.count_definitions();
        let recording = transcript.recording.take();
        let report = &transcript.report;
        let failed = |end: &mut RunEnd, error| {
            end.end_reason = EndReason::Failed;
            end.error.get_or_insert(error);
        };
        let adds_usage = recording.as_ref().is_some_and(Recording::adds_usage);
        if !adds_usage && let Err(error) = report.spending.write().await {
            failed(end, error);
        }
        let Some(recording) = recording else { return };
        let last = report.ended(end);
        transcript.prefix.unchanged(recording.unchanged());
        let (usage, took, run) = (report.usage, report.began.elapsed(), transcript.prefix.run());
        let written = recording.end(&transcript.messages, end, usage, &last, took, run);
        if let Err(mut error) = written.await {
            // The turn has no end in the store, which decides whether it is resumed.
            if let Some(before) = end.error.take_if(|before| before.code != error.code) {
                error.message += &format!("; before that, the run failed: {}", before.message);
            }
            failed(end, error);
        }
        // What the session could not write.
        if adds_usage && let Err(error) = report.spending.write().await {
            failed(end, error);
        }
    }

    fn settle(self, mut end: RunEnd) -> RunOutcome {
        let Self { turn, model_loop, conversation, .. } = self;
        let ModelLoop { mut transcript, menus, .. } = model_loop;
        if let Some(error) = &mut end.error {
            error.message = transcript.agent.engine.redactor().text(&error.message).into_owned();
        }
        transcript.report.over(&end);
        transcript.prefix.keep(&transcript.agent.conversations, conversation, &transcript.messages);
        let RunEnd { end_reason, answer, error } = end;
        RunOutcome {
            turn_id: Arc::clone(turn.turn_id()),
            end_reason,
            error,
            iterations: turn.iterations(),
            tool_calls: transcript.tool_calls,
            usage: transcript.report.usage,
            stop: transcript.stop.filter(|_| answer.is_some()),
            answer,
            menus,
            image_notices: mem::take(&mut transcript.report.image_notices),
            messages: transcript.messages,
            duration: transcript.report.began.elapsed(),
        }
    }
}
