//! The person at the editor: sees the updates of a session, and decides on its calls.

use std::{collections::HashMap, sync::Arc};

use agent_client_protocol::{
    Client,
    v1::{
        ConnectionTo,
        schema::{
            PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
            RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, ToolKind,
        },
    },
};
use parking_lot::Mutex;
use toolcrib_core::{Approval, ApprovalRequest, Approver, BoxFuture, Event, EventKind, Tool};

use crate::output;

const ALLOW: &str = "allow";
const REJECT: &str = "reject";

/// One session as its editor shows it. Clones share it.
#[derive(Clone)]
pub(super) struct Editor {
    connection: ConnectionTo<Client>,
    session: SessionId,
    kinds: Arc<HashMap<Box<str>, ToolKind>>,
    /// The text of the model since its last request.
    text: Arc<Mutex<String>>,
}

impl Editor {
    /// `tools` have the hints about effects that the editor shows.
    pub(super) fn new<'a>(
        connection: ConnectionTo<Client>,
        session: SessionId,
        tools: impl Iterator<Item = &'a Tool>,
    ) -> Self {
        let kinds = tools.map(|tool| (tool.name().as_str().into(), output::tool_kind(tool)));
        let (kinds, text) = (Arc::new(kinds.collect()), Arc::default());
        Self { connection, session, kinds, text }
    }

    /// The kind of a tool; `other` for an unknown one.
    pub(super) fn kind(&self, tool: &str) -> ToolKind {
        self.kinds.get(tool).copied().unwrap_or_default()
    }

    /// Shows an update. An editor that is gone needs none.
    pub(super) fn show(&self, update: SessionUpdate) {
        let notification = SessionNotification::new(self.session.clone(), update);
        let _ = self.connection.send_notification(notification);
    }

    /// Shows an event of a turn.
    pub(super) fn tell(&self, event: &Event) {
        match &event.kind {
            EventKind::ModelStart { .. } | EventKind::ModelSuperseded { .. } => {
                self.text.lock().clear();
            }
            EventKind::ModelText { text } => self.text.lock().push_str(text),
            _ => {}
        }
        if let Some(update) = output::update(event, |tool| self.kind(tool)) {
            self.show(update);
        }
    }

    /// Shows the answer, unless it was the model's last text: at a limit it is Toolcrib's.
    pub(super) fn answered(&self, answer: Option<&str>) {
        if let Some(answer) = answer.filter(|answer| self.text.lock().trim() != answer.trim()) {
            self.show(output::message_update(answer));
        }
    }

    async fn decide(&self, request: ApprovalRequest<'_>) -> Approval {
        let tool = request.tool.name();
        let arguments = match request.arguments {
            Ok(arguments) => arguments,
            // A call that cannot be shown as it is cannot be judged.
            Err(error) => return Approval::Refused(format!("`{tool}` was not called: {error}")),
        };
        let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name, kind);
        let options = vec![
            option(ALLOW, "Run it once", PermissionOptionKind::AllowOnce),
            option(REJECT, "Do not run it", PermissionOptionKind::RejectOnce),
        ];
        let call = output::permission(&request, arguments);
        let asked = RequestPermissionRequest::new(self.session.clone(), call, options);
        // Dropped with the turn, it tells the editor to take the question back.
        let answer = self.connection.send_request(asked).block_task().await;
        match answer.map(|answer| answer.outcome) {
            Ok(RequestPermissionOutcome::Selected(chosen)) if &*chosen.option_id.0 == ALLOW => {
                Approval::Approved
            }
            Ok(_) => Approval::Refused(format!(
                "the user refused this call of `{tool}`; do not repeat it, ask what they want \
                 instead"
            )),
            Err(error) => Approval::Failed {
                message: format!("calling `{tool}` needs approval, and the editor did not ask"),
                cause: format!("session/request_permission: {}", error.message),
            },
        }
    }
}

impl Approver for Editor {
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(self.decide(request))
    }
}
