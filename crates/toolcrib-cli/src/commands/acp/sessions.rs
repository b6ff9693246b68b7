//! The sessions of one editor.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use agent_client_protocol::{
    Client, Error, ErrorCode,
    v1::{
        ConnectionTo, Responder,
        schema::{
            CloseSessionResponse, LoadSessionResponse, NewSessionResponse, PromptRequest,
            PromptResponse, SessionId,
        },
    },
};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::mpsc;
use toolcrib_core::{Attachments, CancellationToken};

use super::{Request, prompt, session::SessionStart};
use crate::args::{AcpArgs, GlobalArgs};

/// The limit of open sessions: each has its project loaded, with its programs and connections.
const MAX_SESSIONS: usize = 32;

pub(super) struct Sessions<'a> {
    pub(super) global: &'a GlobalArgs,
    pub(super) args: &'a AcpArgs,
    pub(super) cancellation: CancellationToken,
    pub(super) editor: ConnectionTo<Client>,
    open: RefCell<HashMap<SessionId, OpenSession>>,
    /// The prompts for sessions that are being loaded, by session.
    loading: RefCell<HashMap<SessionId, Vec<HeldPrompt>>>,
    /// Whether the editor has closed its side.
    is_closing: Cell<bool>,
    /// The number of sessions that are not stored.
    unstored: Cell<usize>,
}

/// A prompt that waits until its session is loaded.
type HeldPrompt = (PromptRequest, Responder<PromptResponse>);

/// An open session.
struct OpenSession {
    prompts: mpsc::Sender<Prompt>,
    /// Ends its running turn; `None` between two turns.
    turn: Option<CancellationToken>,
}

/// A prompt for a session.
pub(super) struct Prompt {
    pub(super) message: String,
    pub(super) attachments: Attachments,
    pub(super) turn: CancellationToken,
    pub(super) responder: Responder<PromptResponse>,
}

impl<'a> Sessions<'a> {
    pub(super) fn new(
        global: &'a GlobalArgs,
        args: &'a AcpArgs,
        cancellation: CancellationToken,
        editor: ConnectionTo<Client>,
    ) -> Self {
        Self {
            global,
            args,
            cancellation,
            editor,
            open: RefCell::default(),
            loading: RefCell::default(),
            is_closing: Cell::default(),
            unstored: Cell::default(),
        }
    }

    /// Serves the editor until it closes its side, or the process is to end. Then running turns are
    /// cancelled, and all sessions closed. Requests that came before are answered.
    pub(super) async fn serve(&self, mut requests: mpsc::Receiver<Request>) {
        let mut running = FuturesUnordered::new();
        loop {
            let request = tokio::select! {
                biased;
                () = self.cancellation.cancelled() => break,
                Some(()) = running.next() => continue,
                request = requests.recv() => request,
                () = self.editor.incoming_closed() => {
                    self.is_closing.set(true);
                    break;
                }
            };
            let Some(request) = request else { break };
            let Some(begin) = self.handle(request) else { continue };
            if running.len() < MAX_SESSIONS {
                running.push(begin.serve(self));
            } else {
                let message = format!("{MAX_SESSIONS} sessions are open; close one first");
                (begin.begun)(Err(Error::new(ErrorCode::INVALID_REQUEST, message)));
            }
        }
        let open: Vec<_> = self.open.borrow_mut().drain().collect();
        open.iter().filter_map(|(_, open)| open.turn.as_ref()).for_each(CancellationToken::cancel);
        drop(open);
        if !self.is_closing.get() {
            self.cancellation.cancel();
        }
        while let Some(()) = running.next().await {}
        self.cancellation.cancel();
    }

    /// Handles a request. One that begins a session is the session's start.
    fn handle(&self, request: Request) -> Option<SessionStart> {
        // An answer that cannot be sent has no reader.
        match request {
            Request::New(new, responder) => {
                return Some(SessionStart {
                    folder: new.cwd,
                    session: None,
                    ignored: new.mcp_servers.len(),
                    begun: Box::new(|begun| {
                        let _ = responder.respond_with_result(begun.map(NewSessionResponse::new));
                    }),
                });
            }
            Request::Load(load, responder) => {
                self.loading.borrow_mut().entry(load.session_id.clone()).or_default();
                return Some(SessionStart {
                    folder: load.cwd,
                    session: Some(load.session_id),
                    ignored: load.mcp_servers.len(),
                    begun: Box::new(|begun| {
                        let begun = begun.map(|_| LoadSessionResponse::new());
                        let _ = responder.respond_with_result(begun);
                    }),
                });
            }
            Request::Prompt(prompt, responder) => {
                let _ = self.prompt(prompt, responder);
            }
            Request::Cancel(cancel) => self.end_turn(&cancel.session_id),
            Request::Close(close, responder) => {
                let _ = self.close(&close.session_id, responder);
            }
        }
        None
    }

    /// Gives a session its next prompt.
    fn prompt(
        &self,
        prompt: PromptRequest,
        responder: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        if let Some(held) = self.loading.borrow_mut().get_mut(&prompt.session_id)
            && !self.is_open(&prompt.session_id)
        {
            held.push((prompt, responder));
            return Ok(());
        }
        let mut open = self.open.borrow_mut();
        let Some(session) = open.get_mut(&prompt.session_id) else {
            return responder.respond_with_error(unknown(&prompt.session_id));
        };
        if session.turn.is_some() {
            let message = "a turn of this session is running; cancel it, or wait for its end";
            return responder.respond_with_error(Error::new(ErrorCode::INVALID_REQUEST, message));
        }
        let (message, attachments) = match prompt::message(prompt.prompt) {
            Ok(prompt) => prompt,
            Err(error) => return responder.respond_with_error(error),
        };
        let turn = self.cancellation.child_token();
        session.turn = Some(turn.clone());
        // There is room for one: the last turn has ended.
        match session.prompts.try_send(Prompt { message, attachments, turn, responder }) {
            Ok(()) => Ok(()),
            Err(unsent) => {
                unsent.into_inner().responder.respond_with_error(Error::internal_error())
            }
        }
    }

    fn close(
        &self,
        session: &SessionId,
        responder: Responder<CloseSessionResponse>,
    ) -> Result<(), Error> {
        self.end_turn(session);
        match self.open.borrow_mut().remove(session) {
            Some(_) => responder.respond(CloseSessionResponse::new()),
            None => responder.respond_with_error(unknown(session)),
        }
    }

    fn end_turn(&self, session: &SessionId) {
        if let Some(OpenSession { turn: Some(turn), .. }) = self.open.borrow().get(session) {
            turn.cancel();
        }
    }

    pub(super) fn is_open(&self, session: &SessionId) -> bool {
        self.open.borrow().contains_key(session)
    }

    /// The id of a session that is not stored.
    pub(super) fn unstored(&self) -> SessionId {
        self.unstored.set(self.unstored.get() + 1);
        SessionId::new(format!("unstored-{}", self.unstored.get()))
    }

    /// Opens a session for prompts, which end when it is closed.
    pub(super) fn opened(&self, session: &SessionId) -> mpsc::Receiver<Prompt> {
        let (prompts, received) = mpsc::channel(1);
        if !self.is_closing.get() {
            self.open.borrow_mut().insert(session.clone(), OpenSession { prompts, turn: None });
        }
        self.is_loaded(session);
        received
    }

    /// Gives a session that was loaded, or that cannot be, the prompts that came meanwhile.
    pub(super) fn is_loaded(&self, session: &SessionId) {
        let held = self.loading.borrow_mut().remove(session);
        for (prompt, responder) in held.into_iter().flatten() {
            // An answer that cannot be sent has no reader.
            let _ = self.prompt(prompt, responder);
        }
    }

    /// Notes that a turn has ended, before it is answered: the next prompt may follow at once.
    pub(super) fn turn_ended(&self, session: &SessionId) {
        if let Some(open) = self.open.borrow_mut().get_mut(session) {
            open.turn = None;
        }
    }
}

fn unknown(session: &SessionId) -> Error {
    let message = format!("the session `{session}` is not open; begin one, or load it");
    Error::new(ErrorCode::RESOURCE_NOT_FOUND, message)
}
