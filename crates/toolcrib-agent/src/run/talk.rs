//! What is said between user, model and tools.

use std::{collections::HashSet, sync::Arc};

use toolcrib_core::{
    Menu, Message, ModelRequest, ModelResponse, StopReason, ToolCall, ToolChoice, ToolResult, Usage,
};
use toolcrib_engine::{Notice, Recovery};

use super::{
    AgentParts, Models,
    ask::{Heard, Unanswered, ask},
    noticed::Noticed,
    prefix::Prefix,
    recover::Asking,
    report::Report,
    said,
};

/// A conversation that is fit to be sent to a model at any time: each call has one result, ids
/// are there and unique, names are such as vendors take back.
pub(super) struct Talk<'a> {
    pub(super) agent: &'a AgentParts,
    /// The models of the run, and which of them is asked.
    models: &'a Models,
    current: usize,
    system: Arc<str>,
    pub(super) messages: Arc<Vec<Message>>,
    pub(super) tool_calls: Vec<ToolResult>,
    pub(super) report: Report,
    /// `None` where nothing is to be done about failures.
    recovery: Option<Recovery>,
    call_ids: HashSet<Arc<str>>,
    pub(super) prefix: Prefix,
    noticed: Noticed,
    /// Why the model stopped the last time.
    pub(super) stop: Option<StopReason>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        agent: &'a AgentParts,
        models: &'a Models,
        system: Arc<str>,
        messages: Vec<Message>,
        report: Report,
        recovery: Option<Recovery>,
        prefix: Prefix,
    ) -> Self {
        let calls = messages.iter().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            _ => &[],
        });
        Self {
            call_ids: calls.map(|call| Arc::clone(&call.id)).collect(),
            noticed: Noticed::in_history(&messages),
            agent,
            models,
            current: 0,
            system,
            messages: Arc::new(messages),
            tool_calls: Vec::new(),
            report,
            recovery,
            prefix,
            stop: None,
        }
    }

    /// Tells the model which sources failed, if that is not what it was told last. To be called when
    /// each call has its result, before the model is asked.
    pub(super) fn notice(&mut self, notices: &[Notice]) {
        if let Some(notice) = self.noticed.now(notices) {
            Arc::make_mut(&mut self.messages).push(notice);
        }
    }

    /// Asks the model, and keeps what it says. Nothing is copied: once it has answered, the
    /// request is gone and the history is ours alone again.
    pub(super) async fn ask(
        &mut self,
        menu: Arc<Menu>,
        tool_choice: ToolChoice,
    ) -> Result<(Arc<str>, Vec<ToolCall>), Unanswered> {
        self.prefix.next(&menu, &tool_choice, self.messages.len(), &self.report);
        let request = ModelRequest {
            system: Arc::clone(&self.system),
            messages: Arc::clone(&self.messages),
            menu: Arc::clone(&menu),
            tool_choice,
        };
        let (agent, models, report) = (self.agent, self.models, &mut self.report);
        let response = match &self.recovery {
            None => {
                let model = models.first();
                ask(agent, model, report, request, &mut Heard::default())
                    .await
                    .map_err(|unheard| unheard.into_unanswered(model))?
            }
            Some(recovery) => {
                let asking = Asking { agent, models, recovery, current: &mut self.current };
                Box::pin(asking.until_answered(report, request)).await?
            }
        };
        let ModelResponse { text, mut calls, vendor, stop, .. } = response;
        self.stop = Some(stop);
        let redactor = self.agent.engine.redactor();
        let text: Arc<str> = redactor.text(&text).into();
        for call in &mut calls {
            said::without_secrets(call, &menu, redactor);
            self.make_unique(call);
        }
        let said = Message::Assistant {
            text: Arc::clone(&text),
            calls: calls.iter().map(|call| said::kept(call, redactor)).collect(),
            vendor: vendor.map(|vendor| said::vendor_content(vendor, redactor)),
        };
        Arc::make_mut(&mut self.messages).push(said);
        Ok((text, calls))
    }

    /// What the model said last to what the user said; nothing where it has not.
    pub(super) fn said_last(&self) -> Arc<str> {
        let is_asked = |message: &&Message| {
            matches!(message, Message::User { .. }) && message.as_notice().is_none()
        };
        let mut since = self.messages.iter().rev().take_while(|message| !is_asked(message));
        let said = since.find_map(|message| match message {
            Message::Assistant { text, .. } => Some(Arc::clone(text)),
            _ => None,
        });
        said.unwrap_or_default()
    }

    /// A result is found by its call's id, and vendors refuse a history in which one is missing
    /// or stands twice.
    fn make_unique(&mut self, call: &mut ToolCall) {
        let mut number = self.call_ids.len();
        while call.id.is_empty() || !self.call_ids.insert(Arc::clone(&call.id)) {
            number += 1;
            call.id = format!("call_{number}").into();
        }
    }

    /// What is stored is what is replayed.
    pub(super) fn keep(&mut self, results: Vec<ToolResult>) {
        let said = results.iter().map(|result| match result.message() {
            Message::Tool { call_id, name, text, blocks, is_error, untrusted } => Message::Tool {
                call_id,
                name: said::usable(&name),
                text,
                blocks,
                is_error,
                untrusted,
            },
            other => other,
        });
        Arc::make_mut(&mut self.messages).extend(said);
        for result in &results {
            self.report.usage += Usage::of_tool(result.cost_usd);
        }
        self.tool_calls.extend(results);
    }
}
