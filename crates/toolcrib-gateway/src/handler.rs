//! The rmcp handler: one per connection or session, and per request without one.

use std::{borrow::Cow, sync::Arc, time::Instant};

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ClientRequest,
        CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, Extensions,
        GetMeta as _, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolcrib_core::__internal::millis;

use super::{
    Serving,
    access::Caller,
    access_log::AccessEntry,
    call::{self, Asked},
    changes::{self, Changes},
    connection::Connection,
    list,
    post::Running,
    session::{Scope, Session},
    unreadable::no_method,
};

/// Answers the requests of a connection, or of a session over HTTP, or a single one.
pub(super) struct Handler {
    serving: Serving,
    /// The source of a session's permit; unlimited without it.
    places: Option<Arc<Semaphore>>,
    /// Changes since before the client's first request.
    changes: Changes,
    /// Serving has not ended while this exists.
    _runs: TaskTrackerToken,
}

impl Handler {
    pub(super) fn new(serving: &Serving, places: Option<Arc<Semaphore>>) -> Self {
        Self {
            _runs: serving.running.token(),
            changes: serving.gateway.changes.later(),
            serving: serving.clone(),
            places,
        }
    }

    /// The session, unless the request is of the stateless era.
    fn scope(&self, caller: &Caller, context: &RequestContext<RoleServer>) -> Scope {
        let stateless =
            context.meta.protocol_version().is_some_and(|v| has_no_sessions(v.as_str()));
        let session = context.extensions.get::<Connection>().and_then(Connection::session);
        match session {
            Some(session) if !stateless => Scope::Session(Arc::clone(session)),
            _ => Scope::Request(self.serving.clone(), Arc::clone(&caller.access)),
        }
    }

    fn begin_session(
        &self,
        caller: &Caller,
        protocol: ProtocolVersion,
        context: &RequestContext<RoleServer>,
        cause: &mut Option<Arc<str>>,
    ) -> Result<(), ErrorData> {
        let connection = context.extensions.get::<Connection>().ok_or_else(nobody)?;
        let place = match &self.places {
            None => None,
            Some(places) => Some(Arc::clone(places).try_acquire_owned().map_err(|_| {
                let message = "this token has reached its limit of open sessions; end one with \
                    DELETE, or try later";
                ErrorData::internal_error(message, None)
            })?),
        };
        let (session, ended) =
            Session::begin(&self.serving, &caller.access, connection.id(), protocol, place)
                .map_err(|error| {
                    *cause = Some(error.to_string().into());
                    ErrorData::internal_error(error.caller_text(), None)
                })?;
        if !connection.begin(Arc::clone(&session)) {
            let twice = "this connection has been initialized already";
            return Err(ErrorData::invalid_request(twice, None));
        }
        changes::announce_to(&self.serving, &session, ended, context.peer.clone());
        Ok(())
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("toolcrib", env!("CARGO_PKG_VERSION")))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let began = Instant::now();
        let caller = caller(&context.extensions)?;
        context.peer.set_peer_info(request.clone());
        // Why a session did not begin, which the client does not receive.
        let mut cause = None;
        let answer = self.negotiate_initialize(&request).and_then(|mut answer| {
            self.begin_session(&caller, answer.protocol_version.clone(), &context, &mut cause)?;
            answer.instructions = Some(self.serving.gateway.instructions(&caller.access, true));
            Ok(answer)
        });
        self.serving.gateway.log(|| {
            let mut entry = AccessEntry::new("initialize", Some(&caller));
            let connection = context.extensions.get::<Connection>();
            let session = connection.and_then(Connection::session);
            entry.session = session.map(|session| Arc::clone(&session.id));
            match &answer {
                Ok(answer) => entry.protocol = Some(answer.protocol_version.to_string()),
                Err(error) => entry.error = Some(cause.unwrap_or_else(|| (*error.message).into())),
            }
            entry.duration_ms = millis(began.elapsed());
            entry
        });
        answer
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::DiscoverResult, ErrorData> {
        let caller = caller(&context.extensions)?;
        let gateway = &self.serving.gateway;
        gateway
            .check(&caller.access)
            .map_err(|error| ErrorData::internal_error(error.caller_text(), None))?;
        let mut info = self.get_info();
        info.instructions = Some(gateway.instructions(&caller.access, false));
        let versions = self.supported_protocol_versions().into_owned();
        Ok(rmcp::model::DiscoverResult::from_server_info(versions, info))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = caller(&context.extensions)?;
        if request.and_then(|request| request.cursor).is_some() {
            let message = "unknown cursor: the list of tools has one page, without a cursor";
            return Err(ErrorData::invalid_params(message, None));
        }
        let scope = self.scope(&caller, &context);
        list::list(&self.serving, &caller, &scope, &context).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(running) = by_http(&context.extensions).and_then(|parts| parts.get::<Running>())
        {
            return running.answer().await.map(Into::into);
        }
        let caller = caller(&context.extensions)?;
        let scope = self.scope(&caller, &context);
        let asked = Asked::of(&context);
        call::call(&self.serving, &caller, &scope, request, &asked).await.map(Into::into)
    }

    async fn on_cancelled(
        &self,
        cancelled: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        // rmcp has cancelled its own requests; it does not know the registered ones.
        if let Some(connection) = context.extensions.get::<Connection>()
            && let Some(id) = &cancelled.request_id
        {
            connection.cancel(id);
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(not_its_parameters(&request).unwrap_or_else(|| no_method(&request.method)))
    }

    // Only tools are declared. For other features the protocol library would answer these four
    // methods with empty lists.

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(no_method("resources/list"))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(no_method("resources/templates/list"))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(no_method("prompts/list"))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(no_method("completion/complete"))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = caller(&subscription.request_context().extensions)?;
        let scope = Scope::Request(self.serving.clone(), caller.access);
        changes::tell(&self.serving, scope, self.changes.clone(), subscription).await;
        Ok(())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }
}

/// The handshake of the eras with sessions.
pub(super) const INITIALIZE: &str = "initialize";

/// Whether a version of the protocol, such as `2026-07-28`, is of the stateless era.
pub(super) fn has_no_sessions(version: &str) -> bool {
    version >= ProtocolVersion::V_2026_07_28.as_str()
}

/// Whether a request declares the stateless era.
pub(super) fn is_stateless(request: &ClientRequest) -> bool {
    request.get_meta().protocol_version().is_some_and(|v| has_no_sessions(v.as_str()))
}

/// The error for a request with parameters that do not fit its method: then only its method is
/// known. `None` if the method is unknown too.
pub(super) fn not_its_parameters(request: &CustomRequest) -> Option<ErrorData> {
    let message = match request.method.as_str() {
        "tools/call" => {
            "`tools/call` takes `name`, a string, and `arguments`, an object or absent".to_owned()
        }
        method @ INITIALIZE => {
            let params = request.params.clone().unwrap_or_else(|| json!({}));
            let missing = serde_json::from_value::<InitializeRequestParams>(params).err();
            let missing = missing.map(|missing| format!(": {missing}")).unwrap_or_default();
            format!("these are not the parameters of `{method}`{missing}")
        }
        method @ ("tools/list" | "server/discover") => {
            format!("these are not the parameters of `{method}`")
        }
        _ => return None,
    };
    Some(ErrorData::invalid_params(message, None))
}

/// The sender of a request. A request without a known sender is refused.
fn caller(extensions: &Extensions) -> Result<Caller, ErrorData> {
    let by_http = || by_http(extensions).and_then(http::Extensions::get);
    extensions.get::<Caller>().or_else(by_http).cloned().ok_or_else(nobody)
}

/// The extensions that a request over HTTP got on its way.
fn by_http(extensions: &Extensions) -> Option<&http::Extensions> {
    extensions.get::<Parts>().map(|parts| &parts.extensions)
}

fn nobody() -> ErrorData {
    ErrorData::internal_error("the sender of this request is unknown", None)
}
