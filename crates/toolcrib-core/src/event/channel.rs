//! Displays of events, each for one audience.

use super::{Event, EventKind, Events, Subscription};
use crate::tool::context::Audience;

/// A display of events for one audience: a terminal, a chat channel, a dashboard, a client of a gateway.
/// [`Events::channel`] connects it.
///
/// Neighbor: a listener of [`Events::on`] receives progress for all audiences, and is for logs and
/// traces.
pub trait ChannelAdapter: Send + Sync + 'static {
    /// The people who see it: [`User`](Audience::User) receives progress for users,
    /// [`Dashboard`](Audience::Dashboard) that and progress for dashboards, and
    /// [`Internal`](Audience::Internal) all.
    fn audience(&self) -> Audience;

    /// Shows an event. Runs on the run's time, as a listener does; see [`Events::on`].
    fn deliver(&self, event: &Event);
}

impl Event {
    /// Whether an audience may see it. Only progress has an audience; all other events are visible to
    /// all, and a display selects those that it shows.
    pub fn is_for(&self, audience: Audience) -> bool {
        match &self.kind {
            EventKind::ToolProgress { audience: of, .. } => *of >= audience,
            _ => true,
        }
    }
}

impl Events {
    /// Connects a display to the events. It receives all events, except progress for other
    /// audiences than its own, which no display can receive by mistake.
    pub fn channel(&self, adapter: impl ChannelAdapter) -> Subscription {
        let audience = adapter.audience();
        self.listen("*".into(), move |event| {
            if event.is_for(audience) {
                adapter.deliver(event);
            }
        })
    }
}
