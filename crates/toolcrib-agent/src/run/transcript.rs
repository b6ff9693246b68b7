//! The conversation between user, model and tools.

use std::{collections::HashSet, mem, sync::Arc};

use toolcrib_core::{
    Attachments, ErrorCode, EventKind, ImageNotice, Menu, Message, ModelRequest, ModelResponse,
    StopReason, ToolCall, ToolChoice, ToolResult, Usage,
};
use toolcrib_engine::{Notice, ReliabilityContext};

use super::{
    compaction::{Compaction, is_overflow},
    empty_answer,
    last_notice::LastNotice,
    parts::AgentParts,
    prefix::Prefix,
    recording::Recording,
    recover::AnswerRequest,
    refused_images::{WithoutImages, accepted, may_be_refused},
    report::Report,
    request::RequestSize,
    sanitize::{self, message_of},
};
use crate::{
    models::Models,
    outcome::{EndReason, RunEnd},
    session::{CallState, InterruptedCall, InterruptedTurn, outcome_unknown, what_ran},
};

/// A conversation that is valid for a model at any time: each call has one result, ids are present
/// and unique, and vendors accept all names.
pub(super) struct Transcript<'a> {
    pub(super) agent: &'a AgentParts,
    /// The models of the run, and the index of the current one.
    models: &'a Models,
    current: usize,
    system: Arc<str>,
    pub(super) messages: Arc<Vec<Message>>,
    pub(super) tool_calls: Vec<ToolResult>,
    pub(super) report: Report,
    recovery: ReliabilityContext,
    call_ids: HashSet<Arc<str>>,
    pub(super) prefix: Prefix,
    last_notice: LastNotice,
    /// `None` without a session.
    pub(super) recording: Option<Recording>,
    /// The finish reason of the last response.
    pub(super) stop: Option<StopReason>,
    /// The number of messages that the vendor has accepted.
    accepted: usize,
    /// The files of the user's message.
    attachments: Arc<Attachments>,
    request_size: RequestSize,
}

impl<'a> Transcript<'a> {
    pub(super) fn new(
        agent: &'a AgentParts,
        models: &'a Models,
        system: Arc<str>,
        messages: Vec<Message>,
        report: Report,
        recovery: ReliabilityContext,
        prefix: Prefix,
    ) -> Self {
        let calls = messages.iter().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            _ => &[],
        });
        Self {
            call_ids: calls.map(|call| Arc::clone(&call.id)).collect(),
            last_notice: LastNotice::in_history(&messages),
            accepted: accepted(&messages),
            attachments: Arc::default(),
            request_size: RequestSize::default(),
            agent,
            models,
            current: 0,
            system,
            messages: Arc::new(messages),
            tool_calls: Vec::new(),
            report,
            recovery,
            prefix,
            recording: None,
            stop: None,
        }
    }

    /// Records the run in its session.
    pub(super) fn record_in(&mut self, recording: Recording) {
        self.call_ids.extend(recording.left_out());
        self.recording = Some(recording);
    }

    /// Tells the user which images of the attached files the model does not see.
    pub(super) fn attach(&mut self, attachments: &Arc<Attachments>) {
        self.attachments = Arc::clone(attachments);
        self.tell_images();
    }

    fn tell_images(&mut self) {
        if self.attachments.is_empty() {
            return;
        }
        let model = self.models.get(self.current);
        let support = model.images();
        let judged = support.judge(&self.messages);
        let mut judged = judged.of(self.users_message()).iter().flatten();
        for attachment in self.attachments.iter() {
            let (is_sent, reason) = match attachment.image() {
                None => continue,
                Some(Err(error)) => (false, error.to_string()),
                Some(Ok(_)) => match judged.next() {
                    Some(Err(refusal)) => (false, refusal.to_string()),
                    _ if support.sees.is_none() => (
                        true,
                        format!(
                            "it is sent, but it is not known whether `{}` sees images; if not, set \
                             `images = false` in its `[model.NAME]`",
                            model.name()
                        ),
                    ),
                    _ => continue,
                },
            };
            self.report.image(ImageNotice { image: attachment.name().to_owned(), is_sent, reason });
        }
    }

    /// Continues the usage of an interrupted turn, and reports what becomes of its calls.
    pub(super) fn resumed(&mut self, turn: &InterruptedTurn) {
        self.report.usage = turn.usage;
        self.report.spending.resumed(&turn.usage);
        let calls = |is: fn(&CallState) -> bool| {
            let calls = turn.calls.iter().filter(|call| is(&call.state));
            calls.map(|call| Arc::clone(&call.call.id)).collect::<Vec<_>>()
        };
        self.report.emit(|| EventKind::TurnResumed {
            model: Arc::clone(&turn.model),
            responses: turn.responses,
            ended: calls(|state| matches!(state, CallState::Ended(_))),
            lost: calls(|state| matches!(state, CallState::Unknown(_) | CallState::Lost(_))),
            repeated: calls(|state| matches!(state, CallState::CutOff)),
            begun: calls(|state| matches!(state, CallState::New)),
        });
    }

    /// Appends a notice of failed sources, if it differs from the last one. Called when each call
    /// has its result, before the next request.
    pub(super) fn notice(&mut self, notices: &[Notice]) {
        if let Some(notice) = self.last_notice.now(notices) {
            Arc::make_mut(&mut self.messages).push(notice);
        }
    }

    /// Appends a message of the loop to the model.
    pub(super) fn tell(&mut self, text: &str) {
        let message = self.last_notice.tell(text);
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Appends an answer that the loop gives instead of the model.
    pub(super) fn answer(&mut self, text: &Arc<str>) {
        let message = Message::assistant(Arc::clone(text), []);
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// The messages since the user's.
    pub(super) fn turn(&self) -> &[Message] {
        self.messages.get(self.users_message()..).unwrap_or_default()
    }

    /// The position of the user's message.
    fn users_message(&self) -> usize {
        let is_users = |message: &Message| {
            matches!(message, Message::User { .. }) && message.as_notice().is_none()
        };
        self.messages.iter().rposition(is_users).unwrap_or_default()
    }

    /// Calls the model, and keeps its response. Nothing is copied: after the response, the request
    /// is dropped and the conversation is uniquely owned again.
    pub(super) async fn ask(
        &mut self,
        menu: Arc<Menu>,
        tool_choice: ToolChoice,
    ) -> Result<(Arc<str>, Vec<ToolCall>), RunEnd> {
        let may_not_call = tool_choice == ToolChoice::None;
        let model = self.current;
        self.report.take_shown();
        let response = loop {
            match self.request(&menu, tool_choice.clone()).await {
                Ok(response) => break response,
                Err(end) if is_overflow(&end) && self.compact().await? => {}
                Err(end) if may_be_refused(&end) => {
                    let response = self.without_images(end, &menu, &tool_choice).await;
                    break response.map_err(|end| empty_answer::with_calls(end, self.turn()))?;
                }
                Err(end) => return Err(empty_answer::with_calls(end, self.turn())),
            }
        };
        self.accepted = self.messages.len();
        if self.current != model {
            self.tell_images();
        }
        let ModelResponse { text, mut calls, vendor, stop, .. } = response;
        self.stop = Some(stop);
        let is_refused = may_not_call && !calls.is_empty();
        let redactor = self.agent.engine.redactor();
        let text: Arc<str> = redactor.text(&text).into();
        for call in &mut calls {
            sanitize::without_secrets(call, &menu, redactor);
            self.make_unique(call);
        }
        let written = self.agent.engine.read_calls(&menu, &mut calls).await;
        let written = calls.iter().zip(written);
        let said = Message::Assistant {
            text: Arc::clone(&text),
            calls: written.map(|(call, args)| sanitize::kept(call, args, redactor)).collect(),
            vendor: vendor.map(|vendor| sanitize::vendor_content(vendor, redactor)),
        };
        Arc::make_mut(&mut self.messages).push(said);
        // Before its calls are made. Calls that are refused are written with their results, and an
        // answer that is cut off with the end of its turn, so that a resumed run neither makes the
        // calls nor takes the answer for a whole one.
        if !is_refused && !self.is_cut_off() {
            match &mut self.recording {
                // With the intent of the first call.
                Some(recording) if !calls.is_empty() => {
                    recording.add(&self.messages, self.report.usage)?;
                }
                _ => self.record().await?,
            }
        }
        Ok((text, calls))
    }

    /// Whether the model's output limit cut off the last response.
    pub(super) fn is_cut_off(&self) -> bool {
        self.stop == Some(StopReason::MaxTokens)
    }

    /// Repeats a request that failed, without the images that its vendor has not accepted before; if it
    /// has accepted all of them, or the repetition fails too, without any image: another vendor may
    /// have accepted them. If a repetition succeeds, its conversation is kept. Else the images stay, and
    /// the error is the first one.
    async fn without_images(
        &mut self,
        failed: RunEnd,
        menu: &Arc<Menu>,
        tool_choice: &ToolChoice,
    ) -> Result<ModelResponse, RunEnd> {
        let support = self.models.get(self.current).images();
        let mut tried = 0;
        for from in [self.accepted, 0] {
            let Some(without) = WithoutImages::of(&self.messages, from, &support) else { continue };
            if without.positions.len() == tried {
                continue;
            }
            tried = without.positions.len();
            if self.report.take_shown() {
                let model = self.models.get(self.current).name().into();
                self.report.emit(|| EventKind::ModelSuperseded { model });
            }
            let whole = mem::replace(&mut self.messages, Arc::new(without.messages));
            self.request_size.messages_replaced();
            match self.request(menu, tool_choice.clone()).await {
                Ok(response) => {
                    if let Some(recording) = &mut self.recording {
                        recording.replace(&without.positions, &self.messages).await?;
                    }
                    without.notices.into_iter().for_each(|notice| self.report.image(notice));
                    return Ok(response);
                }
                Err(end) => {
                    self.messages = whole;
                    self.request_size.messages_replaced();
                    if end.end_reason != EndReason::Failed {
                        return Err(end);
                    }
                }
            }
        }
        Err(failed)
    }

    /// A single request of a response, with its retries.
    async fn request(
        &mut self,
        menu: &Arc<Menu>,
        tool_choice: ToolChoice,
    ) -> Result<ModelResponse, RunEnd> {
        self.record().await?;
        self.prefix.next(menu, &tool_choice, self.messages.len(), &self.report);
        let request = ModelRequest {
            system: Arc::clone(&self.system),
            messages: Arc::clone(&self.messages),
            menu: Arc::clone(menu),
            tool_choice,
            sent_parts: self.recording.as_ref().map(|recording| Arc::clone(recording.sent_parts())),
        };
        let answer_request = AnswerRequest {
            agent: self.agent,
            models: self.models,
            recovery: &self.recovery,
            current: &mut self.current,
        };
        let sent = self.request_size.of(&request);
        answer_request.until_answered(&mut self.report, request, sent).await
    }

    /// Leaves out the oldest messages that can be left out, because the context window is full.
    /// False if there are none.
    async fn compact(&mut self) -> Result<bool, RunEnd> {
        let Some(compaction) = Compaction::of(&self.messages) else { return Ok(false) };
        if let Some(recording) = &mut self.recording {
            let ids = compaction.call_ids(&self.messages);
            recording.leave_out(compaction.left_out(), ids).await?;
        }
        let messages = Arc::make_mut(&mut self.messages);
        *messages = compaction.remaining(mem::take(messages));
        messages.push(compaction.notice());
        self.request_size.messages_replaced();
        self.report.emit(|| compaction.event());
        Ok(true)
    }

    /// The next calls are those of one response.
    pub(super) fn calls_begin(&self, calls: usize) {
        if let Some(recording) = &self.recording {
            recording.calls_begin(calls);
        }
    }

    /// Writes the new messages to the session.
    pub(super) async fn record(&mut self) -> Result<(), RunEnd> {
        match &mut self.recording {
            Some(recording) => Ok(recording.write(&self.messages, self.report.usage).await?),
            None => Ok(()),
        }
    }

    /// Whether calls wait for approval, and the run can be resumed. Without a session the model reads
    /// that they wait, and the loop goes on.
    pub(super) fn awaits_approval(&self) -> bool {
        self.recording.as_ref().is_some_and(Recording::awaits_approval)
    }

    /// The model's last text since the last user message; empty if there is none.
    pub(super) fn last_text(&self) -> Arc<str> {
        let mut since = self.turn().iter().rev();
        let said = since.find_map(|message| match message {
            Message::Assistant { text, .. } => Some(Arc::clone(text)),
            _ => None,
        });
        said.unwrap_or_default()
    }

    /// Results are matched by their call's id, and vendors reject a conversation in which one is
    /// missing or duplicate.
    fn make_unique(&mut self, call: &mut ToolCall) {
        let mut number = self.call_ids.len();
        while call.id.is_empty() || !self.call_ids.insert(Arc::clone(&call.id)) {
            number += 1;
            call.id = format!("call_{number}").into();
        }
    }

    /// Gives the calls of the last response the arguments with which a middleware replaced theirs: the
    /// model reads what ran.
    fn keep_rewritten(&mut self, results: &[ToolResult]) {
        let mut rewritten = results.iter().filter(|result| result.rewritten).peekable();
        let is_response = |message: &Message| matches!(message, Message::Assistant { .. });
        let Some(position) = self.messages.iter().rposition(is_response) else { return };
        if rewritten.peek().is_none() {
            return;
        }
        let messages = Arc::make_mut(&mut self.messages);
        let Some(message @ Message::Assistant { .. }) = messages.get_mut(position) else { return };
        if let Message::Assistant { calls, .. } = message {
            for result in rewritten {
                let call = calls.iter_mut().find(|call| call.id == result.call_id);
                if let Some(call) = call
                    && let Some(arguments) = what_ran(call, &result.name, &result.args)
                {
                    call.arguments = arguments;
                }
            }
        }
        if let Some(recording) = &mut self.recording {
            recording.replace_next(position, message);
        }
    }

    /// The stored conversation equals the replayed one.
    pub(super) fn keep(&mut self, results: Vec<ToolResult>) {
        self.keep_rewritten(&results);
        let said = results.iter().map(message_of);
        Arc::make_mut(&mut self.messages).extend(said);
        self.count(results);
    }

    /// Keeps the results of the calls of an interrupted turn, in their order. `made` are the
    /// results of those that were made now.
    pub(super) fn keep_interrupted(&mut self, calls: Vec<InterruptedCall>, made: Vec<ToolResult>) {
        self.keep_rewritten(&made);
        let mut results = made.iter().map(message_of);
        let waits = made.iter().any(is_waiting);
        let messages = Arc::make_mut(&mut self.messages);
        for InterruptedCall { call, state, .. } in calls {
            if let CallState::Unknown(_) = state
                && let Some(recording) = &mut self.recording
            {
                recording.outcome_unknown(&call.id);
            }
            messages.push(match state {
                CallState::Ended(result) | CallState::Lost(result) | CallState::Unknown(result) => {
                    // The process that made it has not counted it.
                    if !waits {
                        self.report.spending.kept(&result);
                    }
                    result
                }
                // Each call has a result.
                CallState::CutOff | CallState::New => {
                    results.next().unwrap_or_else(|| outcome_unknown(&call))
                }
            });
        }
        self.count(made);
    }

    fn count(&mut self, results: Vec<ToolResult>) {
        if let Some(recording) = &mut self.recording {
            recording.calls_ended(&results);
        }
        for result in &results {
            self.report.used(Usage::of_tool(result.cost_usd));
        }
        self.report.add_children();
        // The results of a response count once all are in the history: a run that resumes this one has them
        // again.
        if !results.iter().any(is_waiting) {
            self.report.spending.called(&results);
        }
        self.tool_calls.extend(results);
    }
}

/// Whether a call waits for approval.
fn is_waiting(result: &ToolResult) -> bool {
    result.code == Some(ErrorCode::AwaitingApproval)
}
