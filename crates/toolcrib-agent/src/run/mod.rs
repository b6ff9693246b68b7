//! A run: one message up to the answer. The loop is the engine's; the steps of a run are one
//! function each: `run → drive → (step → ask)* → ask_without_calls`.

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

use std::{future::IntoFuture, mem, sync::Arc, time::Instant};

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use toolcrib_core::{
    Event, EventStream, FENCE_NOTICE, Identity, Message, SessionOwner, SkillId, Subscription,
    UnknownEventError, Usage,
};
use toolcrib_engine::{Personality, Skills, Turn, TurnEnd, TurnOptions};

use self::{
    child::{CHILD_NOTICE, Children},
    model_loop::ModelLoop,
    parts::AgentParts,
    pending_usage::PendingUsage,
    prefix::Prefix,
    recording::Recording,
    report::Report,
    spending::Spending,
    transcript::Transcript,
};
use crate::{
    options::RunOptions,
    outcome::{EndReason, RunEnd, RunError, RunOutcome},
    session::{InterruptedCall, InterruptedTurn, Session},
    tally::Tally,
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

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The beginning of a run.
struct Beginning {
    recording: Option<Recording>,
    messages: Vec<Message>,
    message: Arc<str>,
    /// The turn that it continues.
    interrupted: Option<InterruptedTurn>,
}

impl Beginning {
    async fn of(
        agent: &AgentParts,
        message: Option<Arc<str>>,
        session: Option<Session>,
        history: Vec<Message>,
        turn: &mut TurnOptions,
        pending: &PendingUsage,
    ) -> Result<Self, RunError> {
        let failed = |text| RunError::new(RunError::SESSION_FAILED, text);
        if session.is_some() && !history.is_empty() {
            return Err(failed("a session has its own history; leave out `history`"));
        }
        if session.is_some() && turn.dry_run {
            // Its results would be read as those of calls that were made.
            return Err(failed("a dry run cannot be stored; leave out the session"));
        }
        let redactor = agent.engine.redactor().clone();
        let (recording, mut messages) = match (session, message.is_some()) {
            (Some(session), true) => {
                let (recording, messages) =
                    Recording::begin(session, turn, redactor, pending).await?;
                (Some(recording), messages)
            }
            (None, true) => (None, history),
            (Some(session), false) => {
                let (recording, messages, mut interrupted) =
                    Recording::resume(session, turn, redactor, pending).await?;
                if let Some(approver) = &turn.approver {
                    parked::restore(&agent.engine, &**approver, &mut interrupted.calls).await;
                }
                let message = Arc::clone(&interrupted.message);
                let (recording, interrupted) = (Some(recording), Some(interrupted));
                return Ok(Self { recording, messages, message, interrupted });
            }
            (None, false) => return Err(failed("only a run of a session can be resumed")),
        };
        let message = message.unwrap_or_default();
        messages.push(Message::user(Arc::clone(&message)));
        Ok(Self { recording, messages, message, interrupted: None })
    }
}

/// Runs one message to its end, or the interrupted turn of a session.
async fn run(
    agent: &Arc<AgentParts>,
    message: Option<Arc<str>>,
    options: RunOptions,
) -> RunOutcome {
    let began = Instant::now();
    let RunOptions { mut turn, history, session, tool_choices, turn_timeout, usage_store, child } =
        options;
    let owner = SessionOwner { tenant: turn.tenant.clone(), principal: turn.principal.clone() };
    let of_parent = child.as_ref().and_then(|child| child.session.as_ref());
    let session_id = session.as_ref().map(Session::id).or(of_parent).cloned();
    let own_limits = child.as_ref().map_or(&agent.settings.limits, |child| &child.limits);
    let parents = child.as_ref().map(|child| Arc::clone(&child.tally));
    let tally = Tally::new(own_limits.clone(), parents);
    let levels = child.as_ref().map(|child| child.levels);
    let (store, id) = (usage_store.clone(), session_id.clone());
    turn.child_agents = Some(Arc::new(Children::of(agent, &turn, store, id, &tally, levels)));
    let opened = session.clone();
    let pending = PendingUsage::of(usage_store.as_ref());
    let beginning = Beginning::of(agent, message, session, history, &mut turn, &pending).await;
    let Beginning { mut recording, mut messages, message, interrupted } = match beginning {
        Ok(beginning) => beginning,
        Err(error) => return never_began(error, Vec::new(), began),
    };
    let conversation = turn.conversation.clone();
    let allowed = turn_timeout.unwrap_or(agent.settings.turn_timeout);
    let skills = turn.skills.clone();
    turn.revealed = agent.engine.revealed_in(&messages);
    let calls = interrupted.iter().flat_map(|interrupted| &interrupted.calls);
    // Notices between iterations are user messages too.
    let is_users = |message: &&Message| {
        matches!(message, Message::User { .. }) && message.as_notice().is_none()
    };
    let users = messages.iter().filter(is_users).count();
    turn.info.turn = u32::try_from(users).unwrap_or(u32::MAX).max(1);
    turn.info.messages = messages.len();
    turn.tainted |= opened.as_ref().is_some_and(Session::is_tainted)
        || messages.iter().any(Message::is_untrusted)
        || calls.into_iter().any(InterruptedCall::is_untrusted);
    let mut turn = match agent.engine.turn(turn) {
        Ok(turn) => turn,
        Err(error) => return never_began(RunError::from(&error), messages, began),
    };
    // A child reads its task only; its tools open attachments.
    if let (None, None, Some(last)) = (&interrupted, &child, messages.last_mut())
        && let Some(attached) = turn.with_attachments(&message).await
    {
        *last = attached;
    }
    let personality = Arc::clone(turn.personality());
    let Some(models) = agent.models_of(&personality) else {
        let error = RunError::new(RunError::NO_MODEL, no_model(&personality));
        return never_began(error, messages, began);
    };
    let budget = &agent.settings.budget;
    let spending = Spending::new(usage_store, owner, session_id, budget, tally, pending);
    if let Err(error) = spending.check_models(models) {
        return never_began(error, messages, began);
    }
    let system = personality.system.as_ref().unwrap_or(&agent.settings.system);
    let system = system_text(turn.skills(), system, child.is_some(), &skills);

    let conversation = conversation.map(|_| Arc::clone(turn.events().identity()));
    let sent_parts = recording.as_ref().map(|recording| Arc::clone(recording.sent_parts()));
    let whose = conversation.as_deref();
    let settled = recording.as_ref().map(Recording::settled_before).unwrap_or_default();
    let conversations = &agent.conversations;
    let prefix = Prefix::new(conversations, whose, &system, &messages, sent_parts, settled);
    let report = Report::new(&turn, began, spending);
    let recovery = turn.recovery().clone();
    let mut transcript = Transcript::new(agent, models, system, messages, report, recovery, prefix);
    if let (Some(recording), None) = (&mut recording, &interrupted) {
        recording.turn_began(&message, models.first().name(), &skills);
    }
    if let Some(recording) = recording {
        transcript.record_in(recording);
    }
    transcript.report.began(
        &agent.engine.redactor().text(&message),
        models.first().name(),
        &personality.id,
    );
    transcript.attach(turn.attachments());
    let mut model_loop = ModelLoop::new(transcript, tool_choices);
    let of_child = child.and_then(|child| child.max_iterations);
    let mut iterations_left = of_child.unwrap_or(agent.settings.max_iterations);
    let mut answered = None;
    if let Some(interrupted) = interrupted {
        let responses = interrupted.responses;
        let is_last = responses > iterations_left;
        answered = interrupted.answer.clone().map(|answer| match is_last {
            true => RunEnd::answered(EndReason::MaxIterations, answer),
            false => RunEnd::answered(EndReason::Answered, answer),
        });
        // An iteration whose calls have no results yet goes on.
        let iterations = responses - u32::from(!interrupted.calls.is_empty()).min(responses);
        turn.resume(iterations, &interrupted.succeeded);
        iterations_left = iterations_left.saturating_sub(iterations);
        if iterations_left == 0 {
            iterations_left = 1;
            model_loop.wraps_up();
        }
        model_loop.transcript.resumed(&interrupted);
        model_loop.resume(interrupted.calls);
    }
    let mut running = RunState { turn, model_loop, conversation };

    // A timeout ends the run as cancellation does: no step is cut off in the middle.
    let cancellation = running.turn.cancellation().clone();
    let mut time_is_up = false;
    let mut end = if let Some(answered) = answered {
        answered
    } else {
        let mut iterations = std::pin::pin!(running.drive(iterations_left));
        tokio::select! {
            biased;
            end = &mut iterations => end,
            () = sleep(allowed) => {
                time_is_up = true;
                cancellation.cancel();
                iterations.await
            }
        }
    };
    if time_is_up && end.end_reason == EndReason::Cancelled {
        end = RunEnd::timed_out(allowed);
    }
    end = end.unless_cut_off(running.model_loop.transcript.stop);
    if let Some(session) = opened.filter(|_| running.turn.is_tainted()) {
        session.taint();
    }
    running.record_end(&mut end).await;
    running.settle(end)
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

/// The reason why a personality's model cannot be used.
pub(crate) fn no_model(personality: &Personality) -> String {
    format!(
        "personality `{}` has the model `{}`, which this agent does not have; set it with \
         `AgentBuilder::personality_model`",
        personality.id(),
        personality.model.as_deref().unwrap_or_default()
    )
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
    /// The named identity of the conversation, if any.
    conversation: Option<Arc<Identity>>,
}

impl RunState<'_> {
    /// Runs until the model answers, or no iterations are left.
    async fn drive(&mut self, iterations: u32) -> RunEnd {
        let end = self.turn.drive(&mut self.model_loop, iterations).await;
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
        if let Err(error) = written.await {
            failed(end, error);
        }
        // What the session could not write.
        if adds_usage && let Err(error) = report.spending.write().await {
            failed(end, error);
        }
    }

    fn settle(self, mut end: RunEnd) -> RunOutcome {
        let Self { turn, model_loop: ModelLoop { mut transcript, menus, .. }, conversation } = self;
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
