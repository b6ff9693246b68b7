//! The client of a request, as MCP servers see it: their requests and log messages to it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use toolcrib_core::{BoxFuture, ClientAbilities, ClientPort, ClientRefusal};
use toolcrib_engine::Redactor;
use toolcrib_mcp::__internal::harmless_json;

use super::{
    connection::Connection,
    log_messages::{LogLevel, log_message},
    rounds::InputRequests,
    sender::{ClientSender, OpenRequest},
};
use crate::wire::message::is_of_protocol;

/// A field that is an object, which an absent or null one becomes.
fn object<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let field = fields.entry(name).or_insert(Value::Null);
    if field.is_null() {
        *field = json!({});
    }
    field.as_object_mut()
}

/// How servers reach the client.
pub(crate) enum Route {
    /// Not at all: it only has abilities, for lists.
    None,
    /// By requests in its session.
    Session(Connection, ClientSender),
    /// By requests in its session, outside of requests of the client.
    Outside(Connection, ClientSender),
    /// By the next round of its request.
    Rounds(mpsc::Sender<InputRequests>),
}

/// The client of one request, or of a session's lists.
pub(crate) struct Downstream {
    pub(crate) key: usize,
    pub(crate) abilities: ClientAbilities,
    pub(crate) meta: Map<String, Value>,
    pub(crate) redactor: Redactor,
    pub(crate) log: Arc<LogLevel>,
    /// The receiver of log messages.
    pub(crate) client: Option<OpenRequest>,
    pub(crate) route: Route,
}

impl ClientPort for Downstream {
    fn abilities(&self, _: &str) -> ClientAbilities {
        self.abilities
    }

    fn key(&self) -> usize {
        self.key
    }

    fn meta(&self) -> Option<&Map<String, Value>> {
        Some(&self.meta)
    }

    fn log_level(&self) -> Option<&'static str> {
        self.log.name()
    }

    fn request(
        &self,
        server: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        let requests = requests.into_iter().map(|(key, request)| {
            let mut request = harmless_json(self.redactor.json(request));
            // Clients show this server's name: the operator's name says who asks.
            let fields = request.as_object_mut();
            let params = fields.and_then(|fields| object(fields, "params"));
            if let Some(meta) = params.and_then(|params| object(params, "_meta")) {
                // These are about the server's connection.
                meta.retain(|key, _| key != "progressToken" && !is_of_protocol(key));
                meta.insert("toolcrib/server".to_owned(), (*server).into());
            }
            (key, request)
        });
        let requests: Map<_, _> = requests.collect();
        match &self.route {
            Route::None => Box::pin(async {
                Err(ClientRefusal::not_supported("no request of a client is in progress"))
            }),
            Route::Session(connection, client) | Route::Outside(connection, client) => {
                let is_outside = matches!(self.route, Route::Outside(..));
                let (connection, client) = (connection.clone(), client.clone());
                Box::pin(async move {
                    if is_outside {
                        connection.admit_outside().await?;
                    }
                    let mut answers = Map::new();
                    for (key, request) in requests {
                        answers.insert(key, connection.ask(&client, request).await?);
                    }
                    Ok(answers)
                })
            }
            Route::Rounds(asks) => {
                let asks = asks.clone();
                Box::pin(async move {
                    let gone = || ClientRefusal::failed("the client did not come back");
                    let (reply, answers) = oneshot::channel();
                    asks.send(InputRequests { requests, reply }).await.map_err(|_| gone())?;
                    answers.await.map_err(|_| gone())
                })
            }
        }
    }

    fn log(&self, server: &str, message: Value) {
        if let Some(client) = self.client.as_ref().and_then(OpenRequest::client)
            && let Some(message) = log_message(&self.log, &self.redactor, server, message)
        {
            client.offer(message);
        }
    }
}
