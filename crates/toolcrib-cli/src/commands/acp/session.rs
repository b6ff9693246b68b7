//! One session: its project, and its turns.

use std::{path::PathBuf, sync::Arc};

use agent_client_protocol::{
    Error,
    v1::schema::{PromptResponse, SessionId, StopReason},
};
use toolcrib_agent::{EndReason, RunOutcome};
use toolcrib_core::{Approver, Attachments, CancellationToken, is_session_id};
use toolcrib_project::Project;

use super::{
    editor::Editor,
    sessions::{Prompt, Sessions},
};
use crate::{
    args::{FreshArgs, GlobalArgs, RunSession, Situation},
    host::{agent, approver, conversation::Conversation, stored},
    output,
    problem::{Form, Problem},
    project::load::{ChosenModel, Purpose, with_project_told},
};

/// A session that the editor begins or loads.
pub(super) struct SessionStart {
    pub(super) folder: PathBuf,
    /// The session to load; `None` for a new one.
    pub(super) session: Option<SessionId>,
    /// The number of the editor's MCP servers, which are not used.
    pub(super) ignored: usize,
    /// Answers the editor.
    pub(super) begun: SessionResponder,
}

pub(super) type SessionResponder = Box<dyn FnOnce(Result<SessionId, Error>)>;

impl SessionStart {
    /// Loads the project, and serves the prompts until the session is closed.
    pub(super) async fn serve(self, sessions: &Sessions<'_>) {
        let Self { folder, session, ignored, begun } = self;
        let loading = session.clone();
        let mut begun = Some(begun);
        let served = async {
            let situation = situation(sessions, session.as_ref())?;
            if !folder.is_absolute() {
                return Err(Problem::usage("`cwd` must be an absolute path"));
            }
            let tells = !sessions.global.quiet;
            if tells && ignored > 0 {
                output::servers_ignored(ignored);
            }
            let global = GlobalArgs { search_from: Some(folder), ..sessions.global.clone() };
            let purpose = Purpose::Run(FreshArgs::default());
            let model = ChosenModel::from(&sessions.args.model);
            let token = sessions.cancellation.clone();
            with_project_told(&global, tells, purpose, model, &token, async |project| {
                let which = RunSession::default();
                let timeout = sessions.args.timeout;
                let conversation =
                    Conversation::begin(project, &situation, &which, timeout, tells, &token);
                let mut conversation = conversation.await?;
                conversation.create(tells, &token).await?;
                let id = match conversation.session() {
                    Some(stored) => SessionId::new(Arc::clone(stored.id())),
                    None => sessions.unstored(),
                };
                let one = Session { sessions, project, conversation, id };
                one.serve(session.is_some(), &mut begun).await
            })
            .await
        };
        match (served.await, begun) {
            (Err(problem), Some(begun)) => begun(Err(problem.into())),
            (Err(problem), None) if !problem.is_cancelled() => drop(problem.report(Form::Text)),
            _ => {}
        }
        if let Some(failed) = loading {
            sessions.is_loaded(&failed);
        }
    }
}

/// The situation of the turns, with the session to load.
fn situation(sessions: &Sessions<'_>, session: Option<&SessionId>) -> Result<Situation, Problem> {
    let mut situation = sessions.args.situation.clone();
    if let Some(session) = session {
        // Only an id: a name that is not known would begin another session.
        if !is_session_id(&session.0) {
            return Err(stored::unknown(&session.0).into());
        }
        if sessions.is_open(session) {
            return Err(Problem::usage("this session is open already; close it first"));
        }
        situation.session = Some(session.0.to_string());
    }
    Ok(situation)
}

/// A session that is open in the editor.
struct Session<'a> {
    sessions: &'a Sessions<'a>,
    project: &'a Project,
    conversation: Conversation<'a>,
    id: SessionId,
}

impl Session<'_> {
    /// Answers the editor, and serves the prompts until the session is closed. A new session
    /// without a turn leaves nothing.
    async fn serve(
        mut self,
        is_loaded: bool,
        begun: &mut Option<SessionResponder>,
    ) -> Result<(), Problem> {
        let whom = &self.sessions.args.situation.whom;
        if is_loaded {
            let stored = stored::read(self.project, whom, self.id.0.to_string()).await?;
            let editor = self.editor().await;
            let messages = stored.messages.iter().map(|stored| &stored.message);
            output::stored_updates(
                messages,
                |tool| editor.kind(tool),
                |update| editor.show(update),
            );
        }
        let mut prompts = self.sessions.opened(&self.id);
        if let Some(begun) = begun.take() {
            begun(Ok(self.id.clone()));
        }
        let mut has_turns = is_loaded;
        while let Some(Prompt { message, attachments, turn, responder }) = prompts.recv().await {
            has_turns = true;
            let ended = self.turn(message, attachments, turn).await;
            self.sessions.turn_ended(&self.id);
            // An answer that cannot be sent has no reader.
            let _ = responder.respond_with_result(ended.map(PromptResponse::new));
        }
        let is_stored = self.conversation.is_stored();
        self.conversation.close().await;
        if is_stored && !has_turns {
            stored::delete(self.project, whom, self.id.0.to_string()).await?;
        }
        Ok(())
    }

    async fn editor(&self) -> Editor {
        let remote = agent::remote_tools(self.project, &self.conversation.situation).await;
        let tools = self.project.tools().iter().chain(&remote);
        Editor::new(self.sessions.editor.clone(), self.id.clone(), tools)
    }

    /// Runs a turn, and shows it while it runs.
    async fn turn(
        &mut self,
        message: String,
        attachments: Attachments,
        cancellation: CancellationToken,
    ) -> Result<StopReason, Error> {
        let editor = self.editor().await;
        let mut turn = self.conversation.turn(cancellation)?;
        turn.attachments = attachments;
        let person: Arc<dyn Approver> = Arc::new(editor.clone());
        let session = self.conversation.session();
        turn.approver = Some(approver::of_run(self.project, Some(person), session, false).await?);
        let told = editor.clone();
        let outcome = self.conversation.run(message, turn, move |event| told.tell(event)).await?;
        editor.answered(outcome.answer.as_deref());
        stop_reason(outcome)
    }
}

fn stop_reason(outcome: RunOutcome) -> Result<StopReason, Error> {
    Ok(match (outcome.end_reason, outcome.error) {
        (EndReason::Cancelled, _) => StopReason::Cancelled,
        (EndReason::MaxIterations, _) => StopReason::MaxTurnRequests,
        (EndReason::Failed | EndReason::Timeout, Some(error)) => {
            return Err(Problem::from(error).into());
        }
        _ if outcome.stop == Some(toolcrib_core::StopReason::MaxTokens) => StopReason::MaxTokens,
        _ => StopReason::EndTurn,
    })
}
