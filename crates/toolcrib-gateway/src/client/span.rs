//! The span of a call, if spans are written: the calls of servers and discoveries are within it.

#[cfg(feature = "tracing")]
use toolcrib_core::__internal::RequestSpan;
#[cfg(feature = "tracing")]
use tracing::Instrument as _;

use super::request::RequestContext;
use crate::access::access_log::AccessEntry;

pub(crate) struct CallSpan {
    #[cfg(feature = "tracing")]
    request: RequestSpan,
}

impl CallSpan {
    /// Opens it, as a child of the span that the client names.
    pub(crate) fn open(context: &RequestContext<'_>, entry: &AccessEntry) -> Self {
        #[cfg(feature = "tracing")]
        {
            let traceparent =
                context.port.meta().and_then(|meta| meta.get("traceparent")?.as_str());
            let request = RequestSpan::open(
                context.serving.gateway.config.engine.events(),
                &context.id,
                entry.session.as_deref(),
                entry.protocol.as_deref().unwrap_or_default(),
                traceparent,
            );
            Self { request }
        }
        #[cfg(not(feature = "tracing"))]
        {
            let _ = (context, entry);
            Self {}
        }
    }

    /// Runs the call within it.
    pub(crate) fn around<T>(&self, call: impl Future<Output = T>) -> impl Future<Output = T> {
        #[cfg(feature = "tracing")]
        return call.instrument(self.request.span().clone());
        #[cfg(not(feature = "tracing"))]
        call
    }

    /// Closes it with the facts of the access log.
    pub(crate) fn close(self, entry: &AccessEntry) {
        #[cfg(feature = "tracing")]
        {
            let (tool, origin) = (entry.tool.as_deref(), entry.origin.as_deref());
            self.request.found(
                entry.tenant.as_deref(),
                entry.principal.as_deref(),
                entry.turn_id.as_deref(),
                tool.zip(origin),
            );
            match (entry.code, &entry.error) {
                (Some(code), _) => self.request.failed(code.as_str()),
                (None, Some(_)) => self.request.failed("error"),
                (None, None) => {}
            }
        }
        #[cfg(not(feature = "tracing"))]
        let _ = entry;
    }
}
