//! The iterations of a run.

use std::{mem, sync::Arc};

use toolcrib_core::{Menu, ToolCall, ToolChoice};
use toolcrib_engine::{Executed, Executor, IterationContext, Turn};

use super::transcript::Transcript;
use crate::{
    outcome::{MenuSummary, RunEnd, Stopped},
    session::InterruptedCall,
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
    answered: Stopped,
    /// The end of the run, if the loop itself ended it.
    pub(super) end: Option<RunEnd>,
}

impl Executor for ModelLoop<'_> {
    async fn execute(&mut self, mut cx: IterationContext) -> Executed {
        match self.step(&mut cx).await {
            Ok(None) => {}
            Ok(Some(answer)) => {
                self.end = Some(RunEnd::answered(self.answered, answer));
                cx.ack()?;
            }
            Err(end) => {
                if let Some(error) = &end.error {
                    cx.nack(error.clone())?;
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
                RunEnd::answered(Stopped::MaxIterations, answer)
            }
            Err(end) => end,
        });
    }
}

impl<'a> ModelLoop<'a> {
    pub(super) fn new(transcript: Transcript<'a>, tool_choices: Vec<ToolChoice>) -> Self {
        Self {
            transcript,
            tool_choices: tool_choices.into_iter(),
            menu: Arc::default(),
            menus: Vec::new(),
            interrupted: Vec::new(),
            answered: Stopped::Answered,
            end: None,
        }
    }

    /// Continues an interrupted turn: its first iteration settles these calls.
    pub(super) fn resume(&mut self, calls: Vec<InterruptedCall>) {
        self.interrupted = calls;
    }

    /// The turn was interrupted after its last iteration: the next one is the wrap-up.
    pub(super) fn wraps_up(&mut self) {
        self.tool_choices = vec![ToolChoice::None].into_iter();
        self.answered = Stopped::MaxIterations;
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
            let made = cx.execute(open.map(|call| call.call.clone()).collect()).await;
            self.transcript.keep_interrupted(calls, made);
            return Ok(None);
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
        self.transcript.keep(cx.execute(calls).await);
        Ok(None)
    }

    /// A model request with the same tool block, so that the prompt cache stays valid and vendors
    /// accept the conversation, but without calls allowed: the wrap-up of a run. Returns the text
    /// as the answer, and calls, which are to be refused.
    async fn ask_without_calls(&mut self) -> Result<(Arc<str>, Vec<ToolCall>), RunEnd> {
        self.transcript.ask(Arc::clone(&self.menu), ToolChoice::None).await
    }
}
