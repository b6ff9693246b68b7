//! The beginning of a run: its conversation, and then its turn.

use std::{mem, sync::Arc};

use toolcrib_core::{Message, SkillId, ToolChoice};
use toolcrib_engine::{Turn, TurnOptions};

use super::{child::Children, parked, parts::AgentParts, recording::Recording, spending::Spending};
use crate::{
    models::Models,
    options::{Child, RunOptions},
    outcome::RunError,
    session::{InterruptedCall, InterruptedTurn},
};

/// A run before its first step.
pub(super) struct Beginning {
    pub(super) message: Arc<str>,
    pub(super) messages: Vec<Message>,
    pub(super) recording: Option<Recording>,
    /// The turn that it continues.
    pub(super) interrupted: Option<InterruptedTurn>,
    pub(super) spending: Spending,
    pub(super) tool_choices: Vec<ToolChoice>,
    pub(super) skills: Vec<SkillId>,
    /// Whether the conversation has a name.
    pub(super) is_named: bool,
    pub(super) child: Option<Child>,
    /// The options of the turn, until it begins.
    turn: TurnOptions,
}

impl Beginning {
    /// Reads the conversation so far.
    pub(super) async fn of(
        agent: &Arc<AgentParts>,
        message: Option<Arc<str>>,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        let spending = Spending::of(agent, &options);
        let RunOptions { mut turn, history, session, tool_choices, child, submitted, .. } = options;
        turn.child_agents = Some(Arc::new(Children::of(agent, &turn, &spending, child.as_ref())));
        let failed = |text| RunError::new(RunError::SESSION_FAILED, text);
        if session.is_some() && !history.is_empty() {
            return Err(failed("a session has its own history; leave out `history`"));
        }
        if session.is_some() && turn.dry_run {
            // Its results would be read as those of calls that were made.
            return Err(failed("a dry run cannot be stored; leave out the session"));
        }
        let (redactor, pending) = (agent.engine.redactor().clone(), &spending.pending);
        let (recording, mut messages, mut interrupted) = match (session, &message) {
            (Some(session), Some(_)) => {
                let mut begun = Recording::begin(session, &mut turn, redactor, pending).await?;
                if let Some(number) = submitted {
                    begun.0.takes(number);
                }
                (Some(begun.0), begun.1, None)
            }
            (None, Some(_)) => (None, history, None),
            (Some(session), None) => {
                let resumed = Recording::resume(session, &mut turn, redactor, pending).await?;
                (Some(resumed.0), resumed.1, Some(resumed.2))
            }
            (None, None) => return Err(failed("only a run of a session can be resumed")),
        };
        if let (Some(interrupted), Some(approver)) = (&mut interrupted, &turn.approver) {
            parked::restore(&agent.engine, &**approver, &mut interrupted.calls).await;
        }
        let message = match &interrupted {
            Some(interrupted) => Arc::clone(&interrupted.message),
            None => message.unwrap_or_default(),
        };
        if interrupted.is_none() {
            messages.push(Message::user(Arc::clone(&message)));
        }
        let (skills, is_named) = (turn.skills.clone(), turn.conversation.is_some());
        Ok(Self {
            message,
            messages,
            recording,
            interrupted,
            spending,
            tool_choices,
            skills,
            is_named,
            child,
            turn,
        })
    }

    /// Begins the turn, and finds its models.
    pub(super) async fn turn<'a>(
        &mut self,
        agent: &'a AgentParts,
    ) -> Result<(Turn, &'a Models), RunError> {
        let mut options = mem::take(&mut self.turn);
        options.revealed = agent.engine.revealed_in(&self.messages);
        // Notices between iterations are user messages too.
        let is_users = |message: &&Message| {
            matches!(message, Message::User { .. }) && message.as_notice().is_none()
        };
        let users = self.messages.iter().filter(is_users).count();
        options.info.turn = u32::try_from(users).unwrap_or(u32::MAX).max(1);
        options.info.messages = self.messages.len();
        let mut calls = self.interrupted.iter().flat_map(|interrupted| &interrupted.calls);
        options.tainted |= self.recording.as_ref().is_some_and(|own| own.session.is_tainted())
            || self.messages.iter().any(Message::is_untrusted)
            || calls.any(InterruptedCall::is_untrusted);
        let turn = agent.engine.turn(options).map_err(|error| RunError::from(&error))?;
        // A child reads its task only; its tools open attachments.
        if let (None, None, Some(last)) = (&self.interrupted, &self.child, self.messages.last_mut())
            && let Some(attached) = turn.with_attachments(&self.message).await
        {
            *last = attached;
        }
        let models = agent.models_of(turn.personality());
        let models = models.map_err(|problem| RunError::new(RunError::NO_MODEL, problem))?;
        self.spending.check_models(models)?;
        Ok((turn, models))
    }
}
