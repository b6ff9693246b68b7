//! What a run does in each iteration of its turn.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{Menu, ToolCall, ToolChoice};
use toolcrib_engine::{Executed, Executor, IterationContext, Turn};

use super::{ask::Unanswered, talk::Talk};
use crate::outcome::{MenuSummary, RunError};

/// Why the loop ended.
pub(super) enum Ending {
    Answered(Arc<str>),
    OutOfIterations(Arc<str>),
    TimedOut(Duration),
    Cancelled,
    Failed(RunError),
}

impl From<Unanswered> for Ending {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Cancelled => Self::Cancelled,
            Unanswered::Failed(error) => Self::Failed(error),
        }
    }
}

/// The model loop, as the executor of a turn.
pub(super) struct Looping<'a> {
    pub(super) talk: Talk<'a>,
    tool_choices: std::vec::IntoIter<ToolChoice>,
    /// What was offered last.
    menu: Arc<Menu>,
    pub(super) menus: Vec<MenuSummary>,
    /// How it ended, as far as that is the loop's own doing.
    pub(super) ending: Option<Ending>,
}

impl Executor for Looping<'_> {
    async fn execute(&mut self, mut cx: IterationContext) -> Executed {
        match self.step(&mut cx).await {
            Ok(None) => {}
            Ok(Some(answer)) => {
                self.ending = Some(Ending::Answered(answer));
                cx.ack()?;
            }
            Err(Ending::Failed(error)) => {
                cx.nack(error.clone())?;
                self.ending = Some(Ending::Failed(error));
            }
            Err(ending) => self.ending = Some(ending),
        }
        Ok(())
    }

    async fn out_of_iterations(&mut self, turn: &mut Turn) {
        self.talk.report.iteration_over();
        self.ending = Some(match self.ask_without_calls().await {
            Ok((answer, calls)) => {
                if !calls.is_empty() {
                    self.talk.keep(turn.refuse(calls).await);
                }
                Ending::OutOfIterations(answer)
            }
            Err(ending) => ending,
        });
    }
}

impl<'a> Looping<'a> {
    pub(super) fn new(talk: Talk<'a>, tool_choices: Vec<ToolChoice>) -> Self {
        let (menu, menus) = (Arc::default(), Vec::new());
        Self { talk, tool_choices: tool_choices.into_iter(), menu, menus, ending: None }
    }

    /// One iteration: what may the model see, what does it want, what came of it. Gives the
    /// answer, once there is one.
    async fn step(&mut self, cx: &mut IterationContext) -> Result<Option<Arc<str>>, Ending> {
        self.talk.report.iteration(cx.number());
        self.menu = Arc::clone(cx.menu());
        let summary = MenuSummary::new(&self.menu, cx.withheld().len(), self.menus.last());
        self.menus.push(summary);
        self.talk.notice(cx.notices());
        let tool_choice = self.tool_choices.next().unwrap_or_default();
        if tool_choice == ToolChoice::None {
            let (answer, calls) = self.ask_without_calls().await?;
            if !calls.is_empty() {
                self.talk.keep(cx.refuse(calls).await);
            }
            return Ok(Some(answer));
        }
        let (text, calls) = self.talk.ask(Arc::clone(&self.menu), tool_choice).await?;
        if calls.is_empty() {
            return Ok(Some(text));
        }
        self.talk.keep(cx.execute(calls).await);
        Ok(None)
    }

    /// A model call with the same tool block, so that the prompt cache holds and vendors accept the
    /// history, but without the right to call: how a run is wrapped up. What is called all the same
    /// is to be refused, and what was said is the answer.
    async fn ask_without_calls(&mut self) -> Result<(Arc<str>, Vec<ToolCall>), Ending> {
        Ok(self.talk.ask(Arc::clone(&self.menu), ToolChoice::None).await?)
    }
}
