//! The methods of the protocol: one table, and a file for each group of them.

pub(crate) mod assets;
pub(crate) mod call;
pub(crate) mod called_name;
pub(crate) mod completion;
pub(crate) mod discover;
pub(crate) mod find_resource;
pub(crate) mod list;
pub(crate) mod logging;
pub(crate) mod pipe;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod skills;
pub(crate) mod subscribe;

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use rmcp::{ErrorData, model::ServerResult};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use toolcrib_core::{ClientAbilities, ClientPort};
use toolcrib_mcp::__internal::AssetKind;

use crate::{
    client::{
        request::{ClientRequest, Era, RequestContext, ended},
        rounds::{self, Round},
        sender::{Answer, RecheckOnDrop},
    },
    wire::message::{Outcome, Request, no_method},
};

/// A method of the protocol.
struct Method {
    name: &'static str,
    eras: Eras,
    offered_by: OfferedBy,
    /// Answers a request with its parameters.
    answer: Handler,
}

type Handler = for<'a> fn(&'a RequestContext<'a>, Map<String, Value>) -> BoxFuture<'a, Outcome>;

/// The eras of the protocol that have a method.
#[derive(PartialEq)]
enum Eras {
    All,
    WithSessions,
    Stateless,
}

/// The parts of a gateway that offer a method: without them it is not offered.
enum OfferedBy {
    Gateway,
    Servers,
    Skills,
    ServersOrSkills,
}

/// Every method, except for `initialize`, which begins a session.
static METHODS: [Method; 17] = [
    Method::new("tools/call", Eras::All, OfferedBy::Gateway, |context, params| {
        Box::pin(call::call(context, params))
    }),
    Method::new("tools/list", Eras::All, OfferedBy::Gateway, |context, params| {
        Box::pin(list::list(context, params))
    }),
    Method::new("resources/list", Eras::All, OfferedBy::ServersOrSkills, |context, params| {
        Box::pin(resources::list(context, params, AssetKind::Resources))
    }),
    Method::new(
        "resources/templates/list",
        Eras::All,
        OfferedBy::ServersOrSkills,
        |context, params| Box::pin(resources::list(context, params, AssetKind::Templates)),
    ),
    Method::new("resources/read", Eras::All, OfferedBy::ServersOrSkills, |context, params| {
        Box::pin(resources::read(context, params))
    }),
    Method::new("resources/directory/read", Eras::All, OfferedBy::Skills, |context, params| {
        Box::pin(skills::directory(context, params))
    }),
    Method::new(
        "resources/subscribe",
        Eras::WithSessions,
        OfferedBy::Servers,
        |context, params| Box::pin(resources::subscribe(context, params)),
    ),
    Method::new(
        "resources/unsubscribe",
        Eras::WithSessions,
        OfferedBy::Servers,
        |context, params| Box::pin(resources::unsubscribe(context, params)),
    ),
    Method::new("prompts/list", Eras::All, OfferedBy::Servers, |context, params| {
        Box::pin(prompts::list(context, params))
    }),
    Method::new("prompts/get", Eras::All, OfferedBy::Servers, |context, params| {
        Box::pin(prompts::get(context, params))
    }),
    Method::new("completion/complete", Eras::All, OfferedBy::Servers, |context, params| {
        Box::pin(completion::complete(context, params))
    }),
    Method::new("skills/list", Eras::All, OfferedBy::Skills, |context, params| {
        Box::pin(skills::list(context, params))
    }),
    Method::new("skills/get", Eras::All, OfferedBy::Skills, |context, params| {
        Box::pin(skills::get(context, params))
    }),
    Method::new("logging/setLevel", Eras::WithSessions, OfferedBy::Gateway, |context, params| {
        Box::pin(logging::set_level(context, params))
    }),
    Method::new("server/discover", Eras::All, OfferedBy::Gateway, |context, _| {
        Box::pin(discover::discover(context))
    }),
    Method::new(subscribe::LISTEN, Eras::Stateless, OfferedBy::Gateway, |context, params| {
        Box::pin(subscribe::listen(context, params))
    }),
    Method::new("ping", Eras::WithSessions, OfferedBy::Gateway, |_, _| {
        Box::pin(async { Ok(ServerResult::empty(())) })
    }),
];

/// Whether requests of this method begin an iteration of their session.
pub(crate) fn begins_iteration(method: &str) -> bool {
    method != "ping" && METHODS.iter().any(|known| known.name == method)
}

impl Method {
    const fn new(name: &'static str, eras: Eras, offered_by: OfferedBy, answer: Handler) -> Self {
        Self { name, eras, offered_by, answer }
    }

    /// The method of a name that this request may use.
    fn of(name: &str, context: &RequestContext<'_>) -> Option<&'static Self> {
        let method = METHODS.iter().find(|method| method.name == name)?;
        let other_era = match context.era.version().has_initialize() {
            true => Eras::Stateless,
            false => Eras::WithSessions,
        };
        (method.eras != other_era && method.is_offered(context)).then_some(method)
    }

    fn is_offered(&self, context: &RequestContext<'_>) -> bool {
        let gateway = &context.serving.gateway;
        let has_servers = || !gateway.config.servers.is_empty();
        // Skills may be read from files: not before each call.
        let has_skills = || gateway.has_skills(&context.caller.access);
        match self.offered_by {
            OfferedBy::Gateway => true,
            OfferedBy::Servers => has_servers(),
            OfferedBy::Skills => has_skills(),
            OfferedBy::ServersOrSkills => has_servers() || has_skills(),
        }
    }
}

/// Answers a request. A panic is an error of this request alone.
pub(super) async fn answer(request: ClientRequest, mut message: Request) -> Answer {
    let id = request.id.clone();
    // A subscription does not end by itself.
    let is_waited_for = message.method != subscribe::LISTEN;
    let counted = is_waited_for.then(|| request.serving.counted());
    let round = match request.era {
        Era::Session(_) => Ok(None),
        Era::Stateless(_) => Round::take(&mut message, &request.caller.access, &request.open),
    };
    let round = match round {
        Ok(round) => round,
        Err(error) => return Answer::new(id, Err(error)),
    };
    let can = request.abilities(&message);
    let round = round.filter(|round| round.continues() || can != ClientAbilities::default());
    match round {
        None => {
            let recheck = OnceLock::new();
            let outcome = finished(&request, message, can, &recheck).await;
            Answer::new(id, outcome).rechecking(recheck.into_inner())
        }
        Some(round) => {
            // Large futures of rare requests are on the heap: each request has room for the rest.
            Answer::new(id, Box::pin(in_rounds(request, message, can, round, counted)).await)
        }
    }
}

/// Answers a request that may need its client's input before it has a result.
async fn in_rounds(
    mut request: ClientRequest,
    message: Request,
    can: ClientAbilities,
    round: Round,
    counted: Option<impl Send + 'static>,
) -> Outcome {
    let (sender, asks) = mpsc::channel(1);
    request.asks = Some(sender);
    let (serving, connection) = (request.serving.clone(), request.connection.clone());
    let this_round = std::mem::take(&mut request.unwanted);
    let unwanted = request.unwanted.clone();
    let (method, params) = (message.method.clone(), message.params.clone());
    let caller = request.caller.clone();
    let bound = move || rounds::bound(&method, &params, &caller.access);
    let call = async move {
        let outcome = finished(&request, message, can, &OnceLock::new()).await;
        drop((request.limit, counted));
        outcome
    }
    .boxed();
    let gone = async {
        tokio::select! {
            () = this_round.cancelled() => {}
            () = ended(connection.as_ref()) => {}
        }
    };
    rounds::first(&serving, round, bound, call, asks, &unwanted, gone).await
}

async fn finished(
    request: &ClientRequest,
    message: Request,
    can: ClientAbilities,
    recheck: &OnceLock<RecheckOnDrop>,
) -> Outcome {
    let outcome = async {
        let Request { method: name, params, meta, .. } = message;
        let port: Arc<dyn ClientPort> = Arc::new(request.client(meta.0.0, can));
        let context = RequestContext { request, port: &port, recheck };
        let method = Method::of(&name, &context).ok_or_else(|| no_method(&name))?;
        (method.answer)(&context, params).await
    };
    let outcome = AssertUnwindSafe(outcome).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| {
        Err(ErrorData::internal_error("the request ended without an answer", None))
    });
    outcome.map(|mut result| {
        match request.era.version().has_initialize() {
            true => result.strip_result_type_for_legacy_peer(),
            false => result.fill_missing_cache_hints(),
        }
        result
    })
}
