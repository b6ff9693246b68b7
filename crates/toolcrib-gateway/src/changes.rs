//! Notifications of a changed menu. A possible change only causes a check: clients are notified if
//! their known menu differs from the present one.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::{
    StreamExt as _,
    future::{pending, select_all},
    stream::{self, BoxStream, SelectAll},
};
use rmcp::{
    ErrorData,
    model::{
        GetMeta as _, Notification, NotificationMetaObject, RequestId,
        ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
        SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
    },
};
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use toolcrib_core::{CancellationToken, ClientPort};
use toolcrib_mcp::{
    __internal::{Notices, ServerNotice, harmless_json},
    McpClient,
};

use super::{
    ServeContext, Shared,
    access::Access,
    connection::Connection,
    downstream::{log_message, notification, own_message},
    exchange::{ClientSender, RequestContext},
    generation::GatewayState,
    missing::Told,
    resources::{MOST_SUBSCRIPTIONS, Subscription, subscribed},
    servers::{CombinedOffers, Server},
    session::{Purpose, Session},
};

/// How long further changes are collected after the first: servers announce them in bursts.
const SETTLE: Duration = Duration::from_millis(50);

/// How many different announcements of a server are collected at most.
const MOST_TOGETHER: usize = 256;

/// Counters that change when a menu may have changed.
#[derive(Clone, Default)]
pub(super) struct Changes {
    all: Vec<watch::Receiver<u64>>,
    /// Where the counters of another configuration come from.
    current: Option<Arc<GatewayState>>,
}

impl Changes {
    pub(super) fn add(&mut self, changes: watch::Receiver<u64>) {
        self.all.push(changes);
    }

    /// The same, which follows a gateway to its next configuration.
    pub(super) fn of(&self, current: Arc<GatewayState>) -> Self {
        Self { current: Some(current), ..self.clone() }.later()
    }

    /// Changes from now on.
    pub(super) fn later(&self) -> Self {
        let mut changes = match &self.current {
            Some(current) => Self { current: Some(Arc::clone(current)), ..current.receivers() },
            None => self.clone(),
        };
        for change in &mut changes.all {
            change.mark_unchanged();
        }
        changes
    }

    /// Waits for a change, and for immediately following ones. Pending forever if no change is
    /// possible any more.
    async fn settled(&mut self) {
        loop {
            if self.all.is_empty() {
                return pending().await;
            }
            let waiting = self.all.iter_mut().map(|change| Box::pin(change.changed()));
            let (changed, at, _) = select_all(waiting).await;
            if changed.is_ok() {
                tokio::time::sleep(SETTLE).await;
                *self = self.later();
                return;
            }
            // The sender of that counter is gone.
            self.all.swap_remove(at);
        }
    }
}

/// Notifies a session's client of changes until the session ends.
pub(super) fn announce_to(
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
pub(super) fn end_with(serving: &ServeContext, session: &Session, ended: CancellationToken) {
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
pub(super) struct SessionServers {
    client: Arc<dyn ClientPort>,
    servers: Vec<McpClient>,
    notices: SelectAll<BoxStream<'static, (Arc<str>, ServerNotice)>>,
}

impl SessionServers {
    pub(super) fn to(servers: &[Server], client: Arc<dyn ClientPort>) -> Self {
        let announced = servers.iter().map(|server| {
            server.client.attach(&client);
            announcements((Arc::clone(&server.name), server.client.notices()))
        });
        let notices = SelectAll::from_iter(announced);
        Self { client, notices, servers: servers.iter().map(|each| each.client.clone()).collect() }
    }
}

/// The instructions of a connected server for a client that has not received them.
async fn introduction(
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
pub(super) fn pass_on(
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
fn announcements(
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

/// `subscriptions/listen`: notifies a subscriber of the stateless era, until it or the gateway ends, or
/// its token is refused.
/// The menu of such a client is unknown: it is notified at the first possible change.
pub(super) async fn listen(
    exchange: &RequestContext<'_>,
    params: Value,
) -> Result<SubscriptionsListenResult, ErrorData> {
    let _place = exchange.place()?;
    let requested: SubscriptionsListenRequestParams =
        serde_json::from_value(params).map_err(|error| {
            let message =
                format!("these are not the parameters of `subscriptions/listen`: {error}");
            ErrorData::invalid_params(message, None)
        })?;
    let filter = requested.notifications;
    let mut stream = NoticeStream::default();
    let mut offered = CombinedOffers::default();
    let is_about_more = filter.prompts_list_changed == Some(true)
        || filter.resources_list_changed == Some(true)
        || filter.resource_subscriptions.is_some();
    // Then the request receives log messages.
    let has_log = exchange.port.log_level().is_some();
    if is_about_more || has_log {
        let servers = exchange.servers().await?;
        let notices = servers
            .all
            .iter()
            .map(|server| announcements((Arc::clone(&server.name), server.client.notices())));
        stream.notices = SelectAll::from_iter(notices);
        offered = CombinedOffers::of(&servers.all).await;
        stream.untold = offered.not_ready.clone();
        stream.servers = servers.all.iter().map(|server| server.client.clone()).collect();
        let uris = filter.resource_subscriptions.iter().flatten().take(MOST_SUBSCRIPTIONS);
        for uri in uris {
            // One that cannot be subscribed to is not acknowledged.
            if let Ok(subscription) = subscribed(exchange, &servers, uri).await {
                stream.subscriptions.push((uri.clone(), subscription));
            }
        }
    }
    let config = offered.config(false);
    let mut accepted = filter.supported_by(&config.capabilities);
    if accepted.resource_subscriptions.is_some() {
        let uris = stream.subscriptions.iter().map(|(uri, _)| uri.clone());
        accepted.resource_subscriptions = Some(uris.collect());
    }
    let is_about_tools = accepted.tools_list_changed == Some(true);
    let is_heard = exchange.client.notify(acknowledged(accepted.clone(), &exchange.id)).await;
    let tools = async {
        if is_heard && (is_about_tools || has_log) {
            tell(exchange, is_about_tools).await;
        }
        pending::<()>().await;
    };
    let more = async {
        if is_heard {
            stream.tell(exchange, &accepted).await;
        }
        pending::<()>().await;
    };
    tokio::select! {
        () = exchange.no_longer_needed() => {}
        () = exchange.serving.cancellation.cancelled() => {}
        () = exchange.caller.expired() => {}
        () = tools => {}
        () = more => {}
    }
    let mut result = SubscriptionsListenResult::complete(exchange.id.clone());
    result.meta.set_server_info(config.server_info);
    Ok(result)
}

/// A subscriber's notices beside changes of tools.
#[derive(Default)]
struct NoticeStream {
    notices: SelectAll<BoxStream<'static, (Arc<str>, ServerNotice)>>,
    /// By the URI that the client uses.
    subscriptions: Vec<(String, Subscription)>,
    servers: Vec<McpClient>,
    /// The servers whose instructions the client has not received.
    untold: HashSet<Arc<str>>,
}

impl NoticeStream {
    /// Notifies a subscriber until it reads nothing any more.
    async fn tell(&mut self, exchange: &RequestContext<'_>, accepted: &SubscriptionFilter) {
        while let Some((server, notice)) = self.notices.next().await {
            let messages = match notice {
                ServerNotice::Connected => {
                    let (gateway, access) = (&exchange.serving.gateway, &exchange.caller.access);
                    let (servers, untold) = (&self.servers, &mut self.untold);
                    let text = introduction(gateway, access, servers, untold, &server).await;
                    let least = exchange.port.log_level();
                    let message = text.and_then(|text| own_message(least, "info", &server, &text));
                    message.into_iter().for_each(|message| exchange.client.offer(message));
                    continue;
                }
                ServerNotice::PromptsChanged if accepted.prompts_list_changed == Some(true) => {
                    vec![prompts_changed()]
                }
                ServerNotice::ResourcesChanged if accepted.resources_list_changed == Some(true) => {
                    vec![resources_changed()]
                }
                ServerNotice::ResourceUpdated(uri) => {
                    let of_uri = self
                        .subscriptions
                        .iter()
                        .filter(|(_, one)| one.server == server && one.uri == uri);
                    of_uri.map(|(shown, _)| resource_updated(shown)).collect()
                }
                _ => continue,
            };
            for mut message in messages {
                message.get_meta_mut().set_subscription_id(exchange.id.clone());
                if !exchange.client.notify(message).await {
                    return;
                }
            }
        }
    }
}

/// Notifies a subscriber of missing tools, and of its changed menu if it `is_about_tools`, until it reads
/// nothing any more.
async fn tell(exchange: &RequestContext<'_>, is_about_tools: bool) {
    let mut changes = match &exchange.connection {
        Some(connection) => connection.changes().clone(),
        None => exchange.serving.current.changes(),
    };
    let (mut known, mut told) = (None, Told::default());
    loop {
        changes.settled().await;
        let serving = exchange.serving.fresh();
        let Ok(step) = exchange.step_of(&serving, Purpose::Look).await else { continue };
        let untold = told.untold(step.iteration.withheld().missing());
        let (access, least) = (&exchange.caller.access, exchange.port.log_level());
        let message = serving.gateway.missing_message(access, untold, least);
        message.into_iter().for_each(|message| exchange.client.offer(message));
        let menu = step.iteration.menu().fingerprint();
        if known.replace(menu) == Some(menu) || !is_about_tools {
            continue;
        }
        let mut changed = list_changed();
        changed.get_meta_mut().set_subscription_id(exchange.id.clone());
        if !exchange.client.notify(changed).await {
            return;
        }
    }
}

fn prompts_changed() -> ServerNotification {
    ServerNotification::PromptListChangedNotification(Default::default())
}

fn resources_changed() -> ServerNotification {
    ServerNotification::ResourceListChangedNotification(Default::default())
}

fn resource_updated(uri: &str) -> ServerNotification {
    let params = ResourceUpdatedNotificationParam::new(uri);
    ServerNotification::ResourceUpdatedNotification(Notification::new(params))
}

fn list_changed() -> ServerNotification {
    ServerNotification::ToolListChangedNotification(Default::default())
}

fn acknowledged(accepted: SubscriptionFilter, id: &RequestId) -> ServerNotification {
    let params = SubscriptionsAcknowledgedNotificationParams::new(accepted);
    let mut acknowledged = Notification::new(params);
    let mut meta = NotificationMetaObject::new();
    meta.set_subscription_id(id.clone());
    acknowledged.extensions.insert(meta);
    ServerNotification::SubscriptionsAcknowledgedNotification(acknowledged)
}
