//! Announcements for a session's client: a changed menu, and what servers announce.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream, SelectAll},
};
use rmcp::model::{Notification, ResourceUpdatedNotificationParam, ServerNotification};
use tokio::time::{Instant, timeout_at};
use toolcrib_core::{CancellationToken, ClientPort};
use toolcrib_mcp::{
    __internal::{Notices, ServerNotice, harmless_json},
    McpClient,
};

use super::{
    changes::{Changes, SETTLE},
    connection::Connection,
    context::{ServeContext, Shared},
    log_messages::{log_message, own_message},
    offers::CombinedOffers,
    sender::ClientSender,
    servers::Server,
    session::Session,
    state::GatewayState,
};
use crate::{access::Access, wire::message::notification};

/// How many different announcements of a server are collected at most.
const MOST_TOGETHER: usize = 256;

/// Notifies a session's client of changes until the session ends.
pub(crate) fn announce_to(
    serving: &ServeContext,
    session: &Arc<Session>,
    ended: CancellationToken,
    mut changes: Changes,
    client: ClientSender,
) {
    let recheck = Arc::clone(&session.recheck);
    let session = Arc::downgrade(session);
    let closing = serving.cancellation.clone();
    serving.running.spawn(async move {
        loop {
            tokio::select! {
                () = ended.cancelled() => return,
                () = closing.cancelled() => return,
                () = recheck.notified() => {}
                () = changes.settled() => {}
            }
            let Some(session) = session.upgrade() else { return };
            if session.menu_changed(&client).await && !client.notify(list_changed()).await {
                return;
            }
        }
    });
}

/// Ends what servers have for the conversation of a session alone, once the session has ended.
pub(crate) fn end_with(serving: &ServeContext, session: &Session, ended: CancellationToken) {
    let conversation = Arc::clone(&session.identity);
    let current = Arc::clone(&serving.current);
    let closing = serving.cancellation.clone();
    serving.running.spawn(async move {
        tokio::select! {
            () = ended.cancelled() => {}
            () = closing.cancelled() => {}
        }
        for server in &current.shared().config.servers {
            server.end_conversation(&conversation);
        }
    });
}

/// The servers of a session: their announcements, and its client for their requests outside of calls.
pub(crate) struct SessionServers {
    client: Arc<dyn ClientPort>,
    servers: Vec<McpClient>,
    notices: SelectAll<BoxStream<'static, (Arc<str>, ServerNotice)>>,
}

impl SessionServers {
    pub(crate) fn to(servers: &[Server], client: Arc<dyn ClientPort>) -> Self {
        let announced = servers.iter().map(|server| {
            server.client.attach(&client);
            announcements((Arc::clone(&server.name), server.client.notices()))
        });
        let notices = SelectAll::from_iter(announced);
        Self { client, notices, servers: servers.iter().map(|each| each.client.clone()).collect() }
    }
}

/// The instructions of a connected server for a client that has not received them.
pub(crate) async fn introduction(
    gateway: &Shared,
    access: &Access,
    servers: &[McpClient],
    untold: &mut HashSet<Arc<str>>,
    server: &str,
) -> Option<String> {
    let client = servers.iter().find(|client| client.name().as_str() == server)?;
    if !untold.contains(server) {
        return None;
    }
    let offers = client.offers_within(Duration::ZERO).await.ok()??;
    untold.remove(server);
    Some(gateway.server_instructions(access, server, &offers.instructions?))
}

/// Passes the announcements of servers on to a session's client until the session ends: changes of
/// what it was declared, of resources that it subscribed to, log messages that belong to no call, and
/// the instructions of a server that was not ready before. Passes changed roots of the client on to
/// the servers.
pub(crate) fn pass_on(
    serving: &ServeContext,
    session: &Arc<Session>,
    connection: &Connection,
    attached: SessionServers,
    offered: &CombinedOffers,
    client: ClientSender,
) {
    if attached.servers.is_empty() {
        return;
    }
    let connection = connection.clone();
    let session = Arc::downgrade(session);
    let closing = serving.cancellation.clone();
    let mut replaced = serving.current.replaced();
    let mut notices = SessionNotices {
        attached,
        untold: offered.not_ready.clone(),
        offered: offered.clone(),
        client,
        current: Arc::clone(&serving.current),
    };
    serving.running.spawn(async move {
        loop {
            let attached = &mut notices.attached;
            let notice = tokio::select! {
                // The session ends with its connection, which is kept here.
                () = connection.gone() => return,
                () = closing.cancelled() => return,
                () = connection.roots_changed() => {
                    attached.servers.iter().for_each(McpClient::roots_changed);
                    continue;
                }
                Ok(()) = replaced.changed() => None,
                Some(notice) = attached.notices.next(), if !attached.notices.is_empty() => {
                    Some(notice)
                }
            };
            let Some(session) = session.upgrade() else { return };
            let is_heard = match notice {
                None => notices.replaced(&session).await,
                Some((server, notice)) => notices.pass(&session, &server, notice).await,
            };
            if !is_heard {
                return;
            }
        }
    });
}

/// The announcements for a session's client.
struct SessionNotices {
    attached: SessionServers,
    /// The servers whose instructions the client has not received.
    untold: HashSet<Arc<str>>,
    offered: CombinedOffers,
    client: ClientSender,
    current: Arc<GatewayState>,
}

impl SessionNotices {
    /// Continues with the servers of another configuration; false if the client reads nothing any more.
    async fn replaced(&mut self, session: &Session) -> bool {
        let servers = session.servers(&self.current.shared().config.servers).await;
        let before = &self.attached.servers;
        let is_new = |name: &str| before.iter().all(|one| one.name().as_str() != name);
        let names = servers.iter().map(|server| Arc::clone(&server.name));
        self.untold.extend(names.filter(|name| is_new(name)));
        self.attached = SessionServers::to(&servers, Arc::clone(&self.attached.client));
        for server in self.untold.clone() {
            self.introduce(session, &server).await;
        }
        (!self.offered.prompts || self.client.notify(prompts_changed()).await)
            && (!self.offered.resources || self.client.notify(resources_changed()).await)
    }

    /// Sends the instructions of a connected server to a client that has not received them.
    async fn introduce(&mut self, session: &Session, server: &Arc<str>) {
        let gateway = self.current.shared();
        let servers = &self.attached.servers;
        let text = introduction(&gateway, &session.access, servers, &mut self.untold, server).await;
        let least = session.client.log.name();
        let message = text.and_then(|text| own_message(least, "info", server, &text));
        message.into_iter().for_each(|message| self.client.offer(message));
    }

    /// Passes one announcement on; false if the client reads nothing any more.
    async fn pass(&mut self, session: &Session, server: &Arc<str>, notice: ServerNotice) -> bool {
        let redactor = &session.client.redactor;
        let messages = match notice {
            ServerNotice::Connected => {
                self.introduce(session, server).await;
                return true;
            }
            ServerNotice::PromptsChanged if self.offered.prompts => vec![prompts_changed()],
            ServerNotice::ResourcesChanged if self.offered.resources => vec![resources_changed()],
            ServerNotice::ResourceUpdated(uri) => {
                let subscriptions = session.subscriptions.lock();
                let of_uri =
                    subscriptions.iter().filter(|(_, one)| one.server == *server && one.uri == uri);
                of_uri.map(|(shown, _)| resource_updated(shown)).collect()
            }
            ServerNotice::ElicitationComplete(params)
                if session.client.abilities.elicitation_url =>
            {
                let params = harmless_json(redactor.json(params));
                self.client.offer(notification("notifications/elicitation/complete", &params));
                return true;
            }
            ServerNotice::Log(message) => {
                let message = log_message(&session.client.log, redactor, server, message);
                message.into_iter().for_each(|message| self.client.offer(message));
                return true;
            }
            _ => return true,
        };
        for message in messages {
            if !self.client.notify(message).await {
                return false;
            }
        }
        true
    }
}

/// The announcements of one server: those of [`SETTLE`] together, each change once.
pub(crate) fn announcements(
    (server, notices): (Arc<str>, Notices),
) -> BoxStream<'static, (Arc<str>, ServerNotice)> {
    let next = async move |mut notices: Notices| {
        let mut together = vec![notices.next().await?];
        let end = Instant::now() + SETTLE;
        while together.len() < MOST_TOGETHER
            && let Ok(Some(notice)) = timeout_at(end, notices.next()).await
        {
            if matches!(notice, ServerNotice::Log(_)) || !together.contains(&notice) {
                together.push(notice);
            }
        }
        Some((stream::iter(together), notices))
    };
    let all = stream::unfold(notices, next).flatten();
    all.map(move |notice| (Arc::clone(&server), notice)).boxed()
}

pub(crate) fn prompts_changed() -> ServerNotification {
    ServerNotification::PromptListChangedNotification(Default::default())
}

pub(crate) fn resources_changed() -> ServerNotification {
    ServerNotification::ResourceListChangedNotification(Default::default())
}

pub(crate) fn resource_updated(uri: &str) -> ServerNotification {
    let params = ResourceUpdatedNotificationParam::new(uri);
    ServerNotification::ResourceUpdatedNotification(Notification::new(params))
}

pub(crate) fn list_changed() -> ServerNotification {
    ServerNotification::ToolListChangedNotification(Default::default())
}
