//! Spans in OTLP over HTTP, set by OpenTelemetry's environment variables.

use std::{
    collections::HashMap,
    env,
    future::Future,
    pin::Pin,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    propagation::TextMapPropagator as _,
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_http::{Bytes, HttpError, Request, Response};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, WithHttpConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    propagation::TraceContextPropagator,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use tokio::runtime::Handle;
use toolcrib_capabilities::http::{HttpClient, HttpRequest, is_set_by_client};
use toolcrib_core::{Events, SpanLink};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{
    Layer as _, filter::filter_fn, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::{output, problem::Problem};

/// How long the end of the program waits for spans to be sent.
const FLUSH_WITHIN: Duration = Duration::from_secs(3);

/// The timeout of a request to the collector.
const SENT_WITHIN: Duration = Duration::from_secs(10);

/// The limit of a collector's response.
const LARGEST_RESPONSE: usize = 64 * 1024;

/// A valid `traceparent` of today has 55 characters; later versions may be longer.
const LONGEST_TRACEPARENT: usize = 256;

/// The exporter of the process, once a command has engines to watch; `None` without an endpoint.
static PROVIDER: OnceLock<Option<SdkTracerProvider>> = OnceLock::new();

/// Exports the spans of an engine, if the environment names an endpoint.
///
/// # Errors
/// The endpoint is not a URL.
pub(crate) fn export(events: &Events) -> Result<(), Problem> {
    let provider = match PROVIDER.get() {
        Some(started) => started,
        None => {
            let started = start()?;
            PROVIDER.get_or_init(|| started)
        }
    };
    if provider.is_some() {
        events.write_linked_spans(Link(TraceContextPropagator::new()));
    }
    Ok(())
}

/// Sends the spans that have ended, within [`FLUSH_WITHIN`]. The runtime must still run.
pub(crate) fn flush() {
    if let Some(Some(provider)) = PROVIDER.get() {
        // A failure was reported by the exporter.
        let _ = provider.shutdown_with_timeout(FLUSH_WITHIN);
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn start() -> Result<Option<SdkTracerProvider>, Problem> {
    let endpoint = variable(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT)
        .or_else(|| variable(OTEL_EXPORTER_OTLP_ENDPOINT));
    let is_disabled = variable("OTEL_SDK_DISABLED")
        .is_some_and(|it| it.eq_ignore_ascii_case("true"))
        || variable("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter == "none");
    if endpoint.is_none() || is_disabled {
        return Ok(None);
    }
    // The operator names the collector, which is often on this machine.
    let everywhere = ["0.0.0.0/0", "::/0"].into_iter().filter_map(|net| net.parse().ok());
    let client = HttpClient::builder().allow_addresses(everywhere).build();
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(Client { client, runtime: Handle::current() })
        .build()
        .map_err(|error| Problem::usage(format!("traces cannot be exported: {error}")))?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(Exporter { inner: exporter, has_told: AtomicBool::new(false) })
        .with_resource(resource())
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("toolcrib"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(filter_fn(|metadata| metadata.target() == "toolcrib"));
    tracing_subscriber::registry()
        .with(layer)
        .try_init()
        .map_err(|error| Problem::failed("internal", error.to_string()))?;
    Ok(Some(provider))
}

/// The service: `toolcrib`, unless the environment names it.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let is_named = variable("OTEL_SERVICE_NAME").is_some()
        || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
    let builder = Resource::builder().with_attribute(version);
    if is_named { builder } else { builder.with_service_name("toolcrib") }.build()
}

/// Reads and writes the trace context of spans.
struct Link(TraceContextPropagator);

impl SpanLink for Link {
    fn adopt(&self, span: &Span, traceparent: &str) {
        if traceparent.len() > LONGEST_TRACEPARENT {
            return;
        }
        let carrier = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
        let parent = self.0.extract(&carrier);
        if parent.span().span_context().is_valid() {
            // The span is new, so this cannot fail.
            let _ = span.set_parent(parent);
        }
    }

    fn traceparent(&self, span: &Span) -> Option<String> {
        let mut carrier = HashMap::new();
        self.0.inject_context(&span.context(), &mut carrier);
        carrier.remove("traceparent")
    }
}

/// Reports the first failure; all others lose their spans without a word.
#[derive(Debug)]
struct Exporter {
    inner: opentelemetry_otlp::SpanExporter,
    has_told: AtomicBool,
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.inner.export(batch).await;
        if let Err(error) = &sent
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            output::not_exported(error);
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// The project's HTTP client for the exporter, which calls it on a thread without a runtime.
#[derive(Debug)]
struct Client {
    client: HttpClient,
    runtime: Handle,
}

impl opentelemetry_http::HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let (head, body) = request.into_parts();
            let mut request = HttpRequest::new(head.method, head.uri.to_string());
            for (name, mut value) in head.headers {
                // Those of the environment may be keys.
                value.set_sensitive(true);
                if let Some(name) = name.filter(|name| !is_set_by_client(name)) {
                    request.headers.append(name, value);
                }
            }
            request.body = Some(body);
            request.max_redirects = 0;
            request.max_body_bytes = LARGEST_RESPONSE;
            request.timeout = Some(SENT_WITHIN);
            let never = toolcrib_core::CancellationToken::new();
            let answer = client.send(request, &never).await?;
            let mut response = Response::new(answer.body);
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(response)
        });
        Box::pin(async move { sent.await? })
    }
}
