//! `subscriptions/listen`: the announcements for a client without a session.

use std::sync::Arc;

use futures_util::{
    StreamExt as _,
    future::pending,
    stream::{BoxStream, SelectAll},
};
use rmcp::{
    ErrorData,
    model::{
        GetMeta as _, Notification, NotificationMetaObject, RequestId, ServerNotification,
        SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
        SubscriptionsListenRequestParams, SubscriptionsListenResult,
    },
};
use serde_json::{Map, Value};
use toolcrib_mcp::{__internal::ServerNotice, McpClient};

use super::{Outcome, resources::subscribed};
use crate::client::{
    announcements::{
        announcements, introduction, list_changed, prompts_changed, resource_updated,
        resources_changed,
    },
    log_messages::own_message,
    missing::Told,
    offers::CombinedOffers,
    request::RequestContext,
    session::Purpose,
    subscription::{MOST_SUBSCRIPTIONS, Subscription},
};

pub(crate) const LISTEN: &str = "subscriptions/listen";

/// `subscriptions/listen`: notifies a subscriber of the stateless era, until it or the gateway ends, or
/// its token is refused.
/// The menu of such a client is unknown: it is notified at the first possible change.
pub(crate) async fn listen(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    let _place = context.place()?;
    let requested: SubscriptionsListenRequestParams = serde_json::from_value(params.into())
        .map_err(|error| {
            let message = format!("these are not the parameters of `{LISTEN}`: {error}");
            ErrorData::invalid_params(message, None)
        })?;
    let filter = requested.notifications;
    let mut stream = NoticeStream::default();
    let is_about_more = filter.prompts_list_changed == Some(true)
        || filter.resources_list_changed == Some(true)
        || filter.resource_subscriptions.is_some();
    // Then the request receives log messages.
    let has_log = context.port.log_level().is_some();
    if is_about_more || has_log {
        stream = NoticeStream::open(context, &filter).await?;
    }
    let config = stream.offered.config(false);
    let mut accepted = filter.supported_by(&config.capabilities);
    if accepted.resource_subscriptions.is_some() {
        let uris = stream.subscriptions.iter().map(|(uri, _)| uri.clone());
        accepted.resource_subscriptions = Some(uris.collect());
    }
    let is_about_tools = accepted.tools_list_changed == Some(true);
    let is_heard = context.client.notify(acknowledged(accepted.clone(), &context.id)).await;
    let tools = async {
        if is_heard && (is_about_tools || has_log) {
            tell(context, is_about_tools).await;
        }
        pending::<()>().await;
    };
    let more = async {
        if is_heard {
            stream.tell(context, &accepted).await;
        }
        pending::<()>().await;
    };
    tokio::select! {
        () = context.no_longer_needed() => {}
        () = context.serving.cancellation.cancelled() => {}
        () = context.caller.expired() => {}
        () = tools => {}
        () = more => {}
    }
    let mut result = SubscriptionsListenResult::complete(context.id.clone());
    result.meta.set_server_info(config.server_info);
    Ok(result.into())
}

/// A subscriber's notices beside changes of tools.
#[derive(Default)]
struct NoticeStream {
    notices: SelectAll<BoxStream<'static, (Arc<str>, ServerNotice)>>,
    /// By the URI that the client uses.
    subscriptions: Vec<(String, Subscription)>,
    servers: Vec<McpClient>,
    /// The instructions of servers that are not ready are sent when they are.
    offered: CombinedOffers,
}

impl NoticeStream {
    async fn open(
        context: &RequestContext<'_>,
        filter: &SubscriptionFilter,
    ) -> Result<Self, ErrorData> {
        let servers = context.servers().await?;
        let notices = servers
            .all
            .iter()
            .map(|server| announcements((Arc::clone(&server.name), server.client.notices())));
        let mut stream = Self {
            // First: a server may connect meanwhile.
            notices: SelectAll::from_iter(notices),
            subscriptions: Vec::new(),
            servers: servers.all.iter().map(|server| server.client.clone()).collect(),
            offered: CombinedOffers::of(&servers.all).await,
        };
        for uri in filter.resource_subscriptions.iter().flatten().take(MOST_SUBSCRIPTIONS) {
            // One that cannot be subscribed to is not acknowledged.
            if let Ok(subscription) = subscribed(context, &servers, uri).await {
                stream.subscriptions.push((uri.clone(), subscription));
            }
        }
        Ok(stream)
    }

    /// Notifies a subscriber until it reads nothing any more.
    async fn tell(&mut self, context: &RequestContext<'_>, accepted: &SubscriptionFilter) {
        while let Some((server, notice)) = self.notices.next().await {
            let messages = match notice {
                ServerNotice::Connected => {
                    let (gateway, access) = (&context.serving.gateway, &context.caller.access);
                    let (servers, untold) = (&self.servers, &mut self.offered.not_ready);
                    let text = introduction(gateway, access, servers, untold, &server).await;
                    let least = context.port.log_level();
                    let message = text.and_then(|text| own_message(least, "info", &server, &text));
                    message.into_iter().for_each(|message| context.client.offer(message));
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
                message.get_meta_mut().set_subscription_id(context.id.clone());
                if !context.client.notify(message).await {
                    return;
                }
            }
        }
    }
}

/// Notifies a subscriber of missing tools, and of its changed menu if it `is_about_tools`, until it reads
/// nothing any more.
async fn tell(context: &RequestContext<'_>, is_about_tools: bool) {
    let mut changes = match &context.connection {
        Some(connection) => connection.changes().clone(),
        None => context.serving.current.changes(),
    };
    let (mut known, mut told) = (None, Told::default());
    loop {
        changes.settled().await;
        let serving = context.serving.fresh();
        let Ok(step) = context.step_of(&serving, Purpose::Look).await else { continue };
        let untold = told.untold(step.iteration.withheld().missing());
        let (access, least) = (&context.caller.access, context.port.log_level());
        let message = serving.gateway.missing_message(access, untold, least);
        message.into_iter().for_each(|message| context.client.offer(message));
        let menu = step.iteration.menu().fingerprint();
        if known.replace(menu) == Some(menu) || !is_about_tools {
            continue;
        }
        let mut changed = list_changed();
        changed.get_meta_mut().set_subscription_id(context.id.clone());
        if !context.client.notify(changed).await {
            return;
        }
    }
}

fn acknowledged(accepted: SubscriptionFilter, id: &RequestId) -> ServerNotification {
    let params = SubscriptionsAcknowledgedNotificationParams::new(accepted);
    let mut acknowledged = Notification::new(params);
    let mut meta = NotificationMetaObject::new();
    meta.set_subscription_id(id.clone());
    acknowledged.extensions.insert(meta);
    ServerNotification::SubscriptionsAcknowledgedNotification(acknowledged)
}
