//! The iterations of a run.

use std::{mem, sync::Arc};

use toolcrib_core::{EventKind, Menu, ToolCall, ToolChoice, ToolResult};
use toolcrib_engine::{Executor, ExecutorResult, IterationContext, Turn};

use super::{
    guard::{Guard, ReachedLimit},
    transcript::Transcript,
};
use crate::{
    outcome::{EndReason, MenuSummary, RunEnd, RunError},
    session::{InterruptedCall, InterruptedTurn},
};

/// The model loop, as the executor of a turn.
pub(super) struct ModelLoop<'a> {
    pub(super) transcript: Transcript<'a>,
    tool_choices: std::vec::IntoIter<ToolChoice>,
    /// The last menu.
    menu: Arc<Menu>,
    pub(super) menus: Vec<MenuSummary>,
    /// The calls of an interrupted turn whose results the history lacks, until the first iteration.
    interrupted: Vec<InterruptedCall>,
    /// The reason of an end with an answer.
    answered: EndReason,
    guard: Guard,
    /// The end of the run, if the loop itself ended it.
    pub(super) end: Option<RunEnd>,
}

impl Executor for ModelLoop<'_> {
    async fn execute(&mut self, mut cx: IterationContext) -> ExecutorResult {
        match self.step(&mut cx).await {
            Ok(None) => {}
            Ok(Some(answer)) => {
                let mut end = RunEnd::answered(self.answered, answer);
                end.error = self
                    .guard
                    .reached()
                    .map(|reached| RunError::new(RunError::LIMIT_REACHED, &reached.message));
                self.end = Some(end);
                cx.ack()?;
            }
            Err(end) => {
                let end = self.over(end);
                if end.end_reason == EndReason::LimitReached {
                    cx.ack()?;
                } else if let Some(error) = &end.error {
                    cx.nack(error.clone())?;
                } else if end.end_reason == EndReason::AwaitingApproval {
                    cx.ack()?;
                }
                self.end = Some(end);
            }
        }
        Ok(())
    }

    async fn wrap_up(&mut self, turn: &mut Turn) {
        self.transcript.report.iteration_over();
        self.end = Some(match self.ask_without_calls().await {
            Ok((answer, calls)) => {
                if !calls.is_empty() {
                    self.transcript.keep(turn.refuse(calls).await);
                }
                RunEnd::answered(EndReason::MaxIterations, answer)
            }
            Err(end) => self.over(end),
        });
    }
}

impl<'a> ModelLoop<'a> {
    pub(super) fn new(transcript: Transcript<'a>, tool_choices: Vec<ToolChoice>) -> Self {
        let guard = Guard::new(transcript.report.spending.tally(), transcript.turn());
        Self {
            guard,
            transcript,
            tool_choices: tool_choices.into_iter(),
            menu: Arc::default(),
            menus: Vec::new(),
            interrupted: Vec::new(),
            answered: EndReason::Answered,
            end: None,
        }
    }

    /// Continues an interrupted turn: its first iteration settles its calls.
    pub(super) fn resume(&mut self, turn: InterruptedTurn) {
        self.transcript.resumed(&turn);
        self.interrupted = turn.calls;
    }

    /// The turn was interrupted after its last iteration: the next one is the wrap-up.
    pub(super) fn wraps_up(&mut self) {
        self.tool_choices = vec![ToolChoice::None].into_iter();
        self.answered = EndReason::MaxIterations;
    }

    /// One iteration: list tools, call the model, run its calls. Returns the answer, if there is
    /// one.
    async fn step(&mut self, cx: &mut IterationContext) -> Result<Option<Arc<str>>, RunEnd> {
        self.transcript.report.iteration(cx.number());
        self.menu = Arc::clone(cx.menu());
        let summary = MenuSummary::new(&self.menu, cx.withheld().len(), self.menus.last());
        self.menus.push(summary);
        if !self.interrupted.is_empty() {
            let calls = mem::take(&mut self.interrupted);
            let open = calls.iter().filter(|call| call.state.is_open());
            let open: Vec<_> = open.map(|call| call.call.clone()).collect();
            self.transcript.calls_begin(open.len());
            let made = cx.execute(open).await;
            self.guard.count(&made);
            self.transcript.keep_interrupted(calls, made);
            self.transcript.record().await?;
            return self.unless_over(cx).await;
        }
        self.transcript.notice(cx.notices());
        let tool_choice = self.tool_choices.next().unwrap_or_default();
        if tool_choice == ToolChoice::None {
            let (answer, calls) = self.ask_without_calls().await?;
            if !calls.is_empty() {
                self.transcript.keep(cx.refuse(calls).await);
            }
            return Ok(Some(answer));
        }
        let (text, calls) = self.transcript.ask(Arc::clone(&self.menu), tool_choice).await?;
        if calls.is_empty() {
            return Ok(Some(text));
        }
        self.transcript.calls_begin(calls.len());
        let results = match self.transcript.is_cut_off() {
            true => cx.refuse_cut_off(calls).await,
            false => self.execute(cx, calls).await,
        };
        self.guard.count(&results);
        self.transcript.keep(results);
        // Now: tools are listed before the next request, which may take long.
        self.transcript.record().await?;
        self.unless_over(cx).await
    }

    /// Makes the calls of a response, as far as the limits permit it.
    async fn execute(
        &mut self,
        cx: &mut IterationContext,
        calls: Vec<ToolCall>,
    ) -> Vec<ToolResult> {
        self.guard.spent(self.transcript.report.spending.over_limit());
        let is_spent = self.guard.reached().map(|reached| reached.message.clone());
        let mut admitted = Vec::with_capacity(calls.len());
        let (mut made, mut refused) = (Vec::new(), Vec::new());
        for call in calls {
            let refusal = match &is_spent {
                Some(message) => Some(format!("not made: {message}")),
                None => self.guard.admit(&call).err(),
            };
            admitted.push(refusal.is_none());
            match refusal {
                None => made.push(call),
                Some(refusal) => refused.push((call, refusal)),
            }
        }
        let mut made = cx.execute(made).await.into_iter();
        let mut refused = cx.deny(refused).await.into_iter();
        let in_order = admitted.into_iter();
        in_order.filter_map(|is_made| if is_made { made.next() } else { refused.next() }).collect()
    }

    /// Ends the turn once a limit is reached, and returns the answer then; or where
    /// calls wait for approval.
    async fn unless_over(&mut self, cx: &mut IterationContext) -> Result<Option<Arc<str>>, RunEnd> {
        if self.transcript.awaits_approval() {
            return Err(RunEnd::awaiting_approval());
        }
        self.guard.spent(self.transcript.report.spending.over_limit());
        let Some(reached) = self.guard.reached().cloned() else { return Ok(None) };
        if cx.halted().is_some() || cx.cancellation().is_cancelled() {
            return Ok(None);
        }
        self.tell_limit(&reached);
        self.answered = EndReason::LimitReached;
        if let Some(answer) = self.guard.answer(&self.transcript.last_text()) {
            self.transcript.answer(&answer);
            return Ok(Some(answer));
        }
        self.transcript.tell(&format!(
            "{}. No further calls can be made. Answer now with what you have: say what was done, \
             what was not done, and that the limit is the reason.",
            reached.message
        ));
        let (answer, calls) = self.ask_without_calls().await?;
        if !calls.is_empty() {
            self.transcript.keep(cx.refuse(calls).await);
        }
        Ok(Some(answer))
    }

    fn tell_limit(&self, reached: &ReachedLimit) {
        self.transcript.report.emit(|| EventKind::LimitReached {
            limit: Arc::clone(&reached.limit),
            tool: reached.tool.clone(),
            message: reached.message.clone(),
        });
    }

    /// Gives the answer if a limit or budget forbade a request.
    fn over(&mut self, mut end: RunEnd) -> RunEnd {
        let Some(reached) = self.transcript.report.over.take() else { return end };
        if end.end_reason != EndReason::LimitReached {
            return end;
        }
        self.tell_limit(&reached);
        end.error = Some(RunError::new(RunError::LIMIT_REACHED, &reached.message));
        self.guard.replace(reached);
        if let Some(answer) = self.guard.answer(&self.transcript.last_text()) {
            self.transcript.answer(&answer);
            end.answer = Some(answer);
        }
        end
    }

    /// A model request with the same tool block, so that the prompt cache stays valid and vendors
    /// accept the conversation, but without calls allowed: the wrap-up of a run. Returns the text
    /// as the answer, and calls, which are to be refused.
    async fn ask_without_calls(&mut self) -> Result<(Arc<str>, Vec<ToolCall>), RunEnd> {
        self.transcript.ask(Arc::clone(&self.menu), ToolChoice::None).await
    }
}
