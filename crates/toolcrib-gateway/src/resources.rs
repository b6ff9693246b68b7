//! Resources of the servers, and their templates. A URI stays the server's; one that an earlier
//! server also offers is qualified: `mcp:NAME/URI`.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use parking_lot::Mutex;
use rmcp::{
    ErrorData,
    model::{
        CacheScope, CustomResult, ErrorCode as Code, ReadResourceResult, ResourceContents,
        ServerResult,
    },
};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};
use toolcrib_core::{
    __internal::{millis, shortened},
    ContentBlock, Progress, Tool, ToolContext, ToolError, ToolOutput, harmless,
};
use toolcrib_engine::Redactor;
use toolcrib_mcp::__internal::{self as wire, AssetKind, McpRequest, Subscribed};

use super::{
    SOURCES_WITHIN,
    access::Access,
    downstream::is_of_protocol,
    exchange::{Era, Outcome, RequestContext},
    message::no_method,
    servers::{Body, JudgedOnly, Server, Servers, reached, tool},
    session::Step,
    skills,
};

/// The toolset by which rules name resources.
pub(super) const TOOLSET: &str = "mcp.resources";

/// The items of a server's list.
type Items = Arc<[Map<String, Value>]>;

/// How long other servers are waited for when one has what is looked for: an earlier one precedes it.
const OTHERS_WITHIN: Duration = Duration::from_millis(100);

/// The limit of subscriptions of a client.
pub(super) const MOST_SUBSCRIPTIONS: usize = 256;

/// The limit of remembered links.
const MOST_LINKS: usize = 4_096;

/// The servers of the links that results contained, so that clients can read them.
#[derive(Default)]
pub(super) struct Links(Mutex<LinkCache>);

/// The caller that received a link, and its URI.
type LinkKey = (LinkOwner, Arc<str>);

/// The requests that may read a link: those of the same tenant, principal and personality. Without a
/// principal only those of the same session, or of the one client by stdio.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LinkOwner {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    personality: Option<Arc<str>>,
    session: Option<Arc<str>>,
}

impl LinkOwner {
    /// `None` for a request over HTTP whose caller cannot be recognized at its next one.
    fn of(context: &RequestContext<'_>) -> Option<Self> {
        let Access { tenant, principal, personality, .. } = &*context.caller.access;
        let session = match principal {
            Some(_) => None,
            None => context.era.session().map(|session| Arc::clone(&session.id)),
        };
        let is_known = principal.is_some() || session.is_some() || context.caller.peer.is_none();
        is_known.then(|| Self {
            tenant: tenant.clone(),
            principal: principal.clone(),
            personality: personality.clone(),
            session,
        })
    }
}

#[derive(Default)]
struct LinkCache {
    servers: HashMap<LinkKey, Arc<str>>,
    oldest: VecDeque<LinkKey>,
}

impl Links {
    /// Remembers the links in a result of a server, for its caller.
    fn note(&self, context: &RequestContext<'_>, server: &str, blocks: &[ContentBlock]) {
        let Some(owner) = LinkOwner::of(context) else { return };
        let uris = blocks.iter().filter_map(|block| match block {
            ContentBlock::Link { uri, .. } => Some(Arc::clone(uri)),
            _ => None,
        });
        for uri in uris {
            let mut known = self.0.lock();
            let key = (owner.clone(), uri);
            if known.servers.insert(key.clone(), server.into()).is_none() {
                known.oldest.push_back(key);
            }
            if known.oldest.len() > MOST_LINKS
                && let Some(oldest) = known.oldest.pop_front()
            {
                known.servers.remove(&oldest);
            }
        }
    }

    fn server(&self, context: &RequestContext<'_>, uri: &str) -> Option<Arc<str>> {
        let key = (LinkOwner::of(context)?, uri.into());
        self.0.lock().servers.get(&key).cloned()
    }
}

/// A resource of a server.
pub(super) struct ServerResource<'a> {
    pub(super) server: &'a Server,
    /// The server's own URI.
    pub(super) uri: Arc<str>,
}

/// `resources/list` and `resources/templates/list`.
pub(super) async fn list(
    context: &RequestContext<'_>,
    params: &Map<String, Value>,
    kind: AssetKind,
) -> Outcome {
    one_page(params)?;
    let _place = context.place()?;
    let servers = context.servers().await?;
    let lists = lists(&servers, &[kind], |_, _, _| false).await;
    let own = match kind {
        AssetKind::Resources => skills::listed(context),
        _ => Vec::new(),
    };
    if lists.is_none_offered && !context.serving.gateway.has_skills(&context.caller.access) {
        return Err(no_method(match kind {
            AssetKind::Templates => "resources/templates/list",
            _ => "resources/list",
        }));
    }
    let key = if kind == AssetKind::Templates { "uriTemplate" } else { "uri" };
    let redactor = context.serving.gateway.config.engine.redactor();
    let mut seen: HashSet<_> = own.iter().map(|resource| resource.uri.clone()).collect();
    let own = own.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
    let own = own.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let own = own.iter().filter_map(|item| described(redactor, kind, item.as_object()?).ok());
    let mut items: Vec<_> = own.map(Value::Object).collect();
    let fresh_for = match context.serving.gateway.has_skills(&context.caller.access) {
        // Files of skills may change at any time.
        true => Duration::ZERO,
        false => lists.fresh_for(&servers, kind),
    };
    for (server, list) in servers.all.iter().zip(lists.of_servers) {
        let Some(judged) = judged(server) else { continue };
        for item in list.iter() {
            let Some(uri) = item.get(key).and_then(Value::as_str) else { continue };
            // As `find`: the first server of a URI has it, whether it is permitted or not.
            let is_first = seen.insert(uri.to_owned());
            // A cleaned URI would be another one.
            if harmless(uri) != uri || !permits(&servers, &judged, uri) {
                continue;
            }
            let shown = match is_first {
                true => uri.to_owned(),
                false => qualified(&server.name, uri),
            };
            let Ok(mut item) = described(redactor, kind, item) else { continue };
            item.insert(key.to_owned(), shown.into());
            items.push(Value::Object(item));
        }
    }
    Ok(listed(context, kind, &items, fresh_for))
}

/// The description of a prompt or a resource without known secrets.
///
/// # Errors
/// The text that requests name it by, or the name of an argument, contains one.
pub(super) fn described(
    redactor: &Redactor,
    kind: AssetKind,
    item: &Map<String, Value>,
) -> Result<Map<String, Value>, &'static str> {
    let is_clean = |text: &Value| {
        text.as_str().is_none_or(|text| matches!(redactor.text(text), Cow::Borrowed(_)))
    };
    let named_by = match kind {
        AssetKind::Prompts => "name",
        AssetKind::Resources => "uri",
        AssetKind::Templates => "uriTemplate",
    };
    if !item.get(named_by).is_none_or(is_clean) {
        return Err(SECRET_IN_NAME);
    }
    let arguments = item.get("arguments").and_then(Value::as_array);
    let mut names = arguments.into_iter().flatten().filter_map(|argument| argument.get("name"));
    if !names.all(is_clean) {
        return Err(SECRET_IN_ARGUMENT);
    }
    match wire::harmless_json(redactor.description(Value::Object(item.clone()))) {
        Value::Object(clean) => Ok(clean),
        _ => Err(SECRET_IN_NAME),
    }
}

const SECRET_IN_NAME: &str = "its name contains a known secret";
const SECRET_IN_ARGUMENT: &str = "the name of an argument contains a known secret";

/// The refusal of a request for something that lists do not show.
pub(super) fn withheld(reason: &'static str) -> ErrorData {
    ErrorData::invalid_params(format!("it is withheld: {reason}"), None)
}

/// `resources/read`.
pub(super) async fn read(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    let _place = context.place()?;
    let requested = uri_of(&params)?;
    let redactor = context.serving.gateway.config.engine.redactor();
    if let Cow::Owned(_) = redactor.text(&requested) {
        return Err(withheld(SECRET_IN_NAME));
    }
    if let Some(own) = skills::read(context, &requested).await? {
        return own;
    }
    let servers = context.servers().await?;
    let ServerResource { server, uri } =
        find(context, &servers, &requested, "resources/read").await?;
    let absent = || not_found(context, &requested);
    let arguments = Map::from_iter([("uri".to_owned(), Value::from(&*uri))]);
    let (client, name, own) = (server.client.clone(), Arc::clone(&server.name), Arc::clone(&uri));
    let body = Body(move |cx: ToolContext| {
        let (client, name, uri) = (client.clone(), Arc::clone(&name), Arc::clone(&own));
        async move {
            let params = Map::from_iter([("uri".to_owned(), Value::from(&*uri))]);
            let mut answer = client.request(request("resources/read", params, &cx)).await?;
            let Some(Value::Array(contents)) = answer.remove("contents") else {
                return Err(ToolError::failed(format!(
                    "MCP server `{name}` gave no contents of the resource"
                )));
            };
            let blocks = contents.into_iter().map(|each| wire::resource_block(&name, each));
            let blocks = blocks.collect::<Result<_, _>>()?;
            // The server's lifetime does not consider this gateway's policy.
            answer.retain(|key, _| key == "_meta");
            Ok(ToolOutput { blocks, meta: Some(answer.into()), ..ToolOutput::default() })
        }
    });
    let tool = tool(&server.name, "resources", TOOLSET, body).ok_or_else(absent)?;
    let mut result = context.through_the_pipe(&servers.step, tool, arguments, absent).await?;
    link(context, &servers.step, &server.name, &mut result.blocks);
    let fences = context.serving.gateway.fences(&context.caller.access, &server.name);
    let shown = |own: String| if own == *uri { requested.to_string() } else { own };
    let mut contents: Vec<_> = result
        .blocks
        .iter()
        .map(|block| match wire::contents(block) {
            Some(ResourceContents::TextResourceContents { uri, mime_type, text, meta }) => {
                let text = if fences { toolcrib_core::fence(&result.name, &text) } else { text };
                ResourceContents::TextResourceContents { uri: shown(uri), mime_type, text, meta }
            }
            Some(ResourceContents::BlobResourceContents { uri, mime_type, blob, meta }) => {
                ResourceContents::BlobResourceContents { uri: shown(uri), mime_type, blob, meta }
            }
            // A line about contents that are left out.
            _ => ResourceContents::text(block.as_read(), &*requested),
        })
        .collect();
    if contents.is_empty() && !result.value.is_empty() {
        contents.push(ResourceContents::text(&*result.value, &*requested));
    }
    let mut read = ReadResourceResult::new(contents);
    read.meta = result.meta.as_deref().and_then(|meta| {
        let mut meta = meta.get("_meta")?.as_object()?.clone();
        meta.retain(|key, _| !is_of_protocol(key));
        serde_json::from_value(meta.into()).ok()
    });
    Ok(read.into())
}

/// `resources/subscribe`, in a session.
pub(super) async fn subscribe(
    context: &RequestContext<'_>,
    params: &Map<String, Value>,
) -> Outcome {
    let _place = context.place()?;
    let Era::Session(session) = &context.era else { return Err(no_method("resources/subscribe")) };
    let requested = uri_of(params)?;
    let servers = context.servers().await?;
    let subscription = subscribed(context, &servers, &requested).await?;
    let mut subscriptions = session.subscriptions.lock();
    if subscriptions.len() >= MOST_SUBSCRIPTIONS {
        let message = format!("a client has at most {MOST_SUBSCRIPTIONS} subscriptions");
        return Err(ErrorData::internal_error(message, None));
    }
    subscriptions.insert(requested, subscription);
    Ok(ServerResult::empty(()))
}

/// `resources/unsubscribe`, in a session.
pub(super) async fn unsubscribe(
    context: &RequestContext<'_>,
    params: &Map<String, Value>,
) -> Outcome {
    let Era::Session(session) = &context.era else {
        return Err(no_method("resources/unsubscribe"));
    };
    let requested = uri_of(params)?;
    let ended = session.subscriptions.lock().remove(&requested);
    if ended.is_none() {
        // Only what exists can be named without having been subscribed to.
        let servers = context.servers().await?;
        find(context, &servers, &requested, "resources/unsubscribe").await?;
    }
    Ok(ServerResult::empty(()))
}

/// A subscription of a client.
pub(super) struct Subscription {
    pub(super) server: Arc<str>,
    /// The server's own URI.
    pub(super) uri: Arc<str>,
    _upstream: Arc<Subscribed>,
}

/// Subscribes to a resource.
pub(super) async fn subscribed(
    context: &RequestContext<'_>,
    servers: &Servers,
    requested: &str,
) -> Result<Subscription, ErrorData> {
    let ServerResource { server, uri } =
        find(context, servers, requested, "resources/subscribe").await?;
    let absent = || not_found(context, requested);
    let arguments = Map::from_iter([("uri".to_owned(), Value::from(&*uri))]);
    let begun = Arc::new(Mutex::new(None));
    let (client, own, slot) = (server.client.clone(), Arc::clone(&uri), Arc::clone(&begun));
    let body = Body(move |_: ToolContext| {
        let (client, uri, begun) = (client.clone(), Arc::clone(&own), Arc::clone(&slot));
        async move {
            *begun.lock() = Some(client.subscribe(uri).await?);
            Ok(ToolOutput::default())
        }
    });
    let tool = tool(&server.name, "resources", TOOLSET, body).ok_or_else(absent)?;
    context.through_the_pipe(&servers.step, tool, arguments, absent).await?;
    let upstream = begun.lock().take().ok_or_else(absent)?;
    Ok(Subscription { server: Arc::clone(&server.name), uri, _upstream: upstream })
}

/// The server of a URI: the named one, one that lists it, the one whose result linked to it, one with a
/// template for it, or the only one with resources. A server that does not answer delays nothing that
/// the last lists decide.
pub(super) async fn find<'a>(
    context: &RequestContext<'_>,
    servers: &'a Servers,
    requested: &str,
    method: &str,
) -> Result<ServerResource<'a>, ErrorData> {
    let found = |server, uri: &str| Ok(ServerResource { server, uri: uri.into() });
    if let Some((name, uri)) = requested.strip_prefix("mcp:").and_then(|rest| rest.split_once('/'))
        && let Some(server) = servers.by_name(name)
    {
        return found(server, uri);
    }
    let last = |kind| {
        let lists = servers.all.iter().map(|server| server.client.last_assets(kind));
        lists.map(Option::unwrap_or_default).collect::<Vec<_>>()
    };
    let (resources, templates) = (last(AssetKind::Resources), last(AssetKind::Templates));
    if let Some(server) = owner(context, servers, requested, &resources, &templates) {
        return found(server, requested);
    }
    let is_owner = |_: &Server, kind, items: &[Map<String, Value>]| match kind {
        AssetKind::Templates => has_template(items, requested),
        _ => has(items, "uri", &|uri| uri == requested),
    };
    let kinds = [AssetKind::Resources, AssetKind::Templates];
    let Lists { of_servers: mut resources, offers, .. } = lists(servers, &kinds, is_owner).await;
    let templates = resources.split_off(servers.all.len());
    if let Some(server) = owner(context, servers, requested, &resources, &templates) {
        return found(server, requested);
    }
    let offering = servers.all.iter().zip(&offers).filter(|(_, offers)| **offers);
    match offering.map(|(server, _)| server).collect::<Vec<_>>().as_slice() {
        [only] => found(only, requested),
        [] if !context.serving.gateway.has_skills(&context.caller.access) => Err(no_method(method)),
        _ => Err(not_found(context, requested)),
    }
}

/// The server of a URI by these lists of each server.
fn owner<'a>(
    context: &RequestContext<'_>,
    servers: &'a Servers,
    requested: &str,
    resources: &[Items],
    templates: &[Items],
) -> Option<&'a Server> {
    let first = |lists: &[Items], has: &dyn Fn(&Items) -> bool| {
        let mut all = servers.all.iter().zip(lists);
        all.find(|(_, items)| has(items)).map(|(server, _)| server)
    };
    first(resources, &|items| has(items, "uri", &|uri| uri == requested))
        .or_else(|| servers.by_name(&context.serving.gateway.links.server(context, requested)?))
        .or_else(|| first(templates, &|items| has_template(items, requested)))
}

fn has_template(items: &[Map<String, Value>], requested: &str) -> bool {
    let fits = |template: &str| template == requested || fits_template(template, requested);
    has(items, "uriTemplate", &fits)
}

fn has(items: &[Map<String, Value>], key: &str, fits: &dyn Fn(&str) -> bool) -> bool {
    items.iter().any(|item| item.get(key).and_then(Value::as_str).is_some_and(fits))
}

/// Qualifies the links of a server's result whose URIs an earlier server lists, as lists do, and
/// remembers the others.
pub(super) fn link(
    context: &RequestContext<'_>,
    step: &Step,
    server: &str,
    blocks: &mut Arc<[ContentBlock]>,
) {
    let gateway = &context.serving.gateway;
    if !blocks.iter().any(|block| matches!(block, ContentBlock::Link { .. })) {
        return;
    }
    let servers = reached(&step.iteration, &step.identity, &gateway.config.servers);
    let earlier = servers.iter().take_while(|earlier| *earlier.name != *server);
    let lists = earlier.filter_map(|earlier| earlier.client.last_assets(AssetKind::Resources));
    let lists: Vec<_> = lists.collect();
    for block in Arc::make_mut(blocks) {
        if let ContentBlock::Link { uri, .. } = block
            && lists.iter().any(|items| has(items, "uri", &|listed| *listed == **uri))
        {
            *uri = qualified(server, uri).into();
        }
    }
    gateway.links.note(context, server, blocks);
}

/// The resources of a server in the form that rules judge.
fn judged(server: &Server) -> Option<Tool> {
    tool(&server.name, "resources", TOOLSET, JudgedOnly)
}

/// Whether personality, skills and policy permit a resource of a server.
fn permits(servers: &Servers, judged: &Tool, uri: &str) -> bool {
    servers.step.iteration.admits(judged, Some(&json!({ "uri": uri })))
}

/// The lists of all servers.
pub(super) struct Lists {
    pub(super) of_servers: Vec<Items>,
    /// Whether each server offers such a list, as far as it is known.
    offers: Vec<bool>,
    pub(super) is_none_offered: bool,
}

impl Lists {
    /// How long lists of one kind apply together: the least of what the servers state. Zero if one of
    /// those that offer it states nothing or did not answer, or if something else may change the
    /// list at any time.
    pub(super) fn fresh_for(&self, servers: &Servers, kind: AssetKind) -> Duration {
        let offering = servers.all.iter().zip(&self.offers).filter(|(_, offers)| **offers);
        let stated = offering.map(|(server, _)| server.client.assets_fresh_for(kind)).min();
        stated.filter(|_| !servers.step.iteration.may_change()).unwrap_or_default()
    }
}

/// Asks all servers for lists of these kinds: for the first kind, then for the next. The list of a
/// server that fails, or is slow, is empty. When one is enough, the others are not waited for.
pub(super) async fn lists(
    servers: &Servers,
    kinds: &[AssetKind],
    is_enough: impl Fn(&Server, AssetKind, &[Map<String, Value>]) -> bool,
) -> Lists {
    let all = kinds.iter().flat_map(|kind| servers.all.iter().map(move |server| (server, *kind)));
    let mut asked: FuturesUnordered<_> = all
        .enumerate()
        .map(|(at, (server, kind))| async move { (at, server, kind, list_of(server, kind).await) })
        .collect();
    let mut answers = vec![(true, Items::default()); asked.len()];
    let mut until = Instant::now() + SOURCES_WITHIN;
    while let Ok(Some((at, server, kind, answer))) = timeout_at(until, asked.next()).await {
        if is_enough(server, kind, &answer.1) {
            until = until.min(Instant::now() + OTHERS_WITHIN);
        }
        if let Some(slow) = answers.get_mut(at) {
            *slow = answer;
        }
    }
    let (offers, of_servers): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let is_none_offered = !offers.contains(&true);
    Lists { of_servers, offers, is_none_offered }
}

/// Whether a server offers lists of a kind, and its list.
async fn list_of(server: &Server, kind: AssetKind) -> (bool, Items) {
    let listed = server.client.assets_within(kind, SOURCES_WITHIN).await;
    (listed.is_some(), listed.unwrap_or_default())
}

/// The result of a list with one page.
pub(super) fn listed(
    context: &RequestContext<'_>,
    kind: AssetKind,
    items: &[Value],
    fresh_for: Duration,
) -> ServerResult {
    let mut result = json!({ kind.field(): items });
    if let Era::Stateless(_) = context.era
        && let Some(fields) = result.as_object_mut()
    {
        fields.insert("resultType".to_owned(), "complete".into());
        fields.insert("ttlMs".to_owned(), millis(fresh_for).into());
        // What a caller is listed depends on its rights.
        fields.insert("cacheScope".to_owned(), json!(CacheScope::Private));
    }
    ServerResult::CustomResult(CustomResult::new(result))
}

/// Refuses a cursor: lists have one page.
pub(super) fn one_page(params: &Map<String, Value>) -> Result<(), ErrorData> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => {
            let message = "unknown cursor: the list has one page, without a cursor";
            Err(ErrorData::invalid_params(message, None))
        }
    }
}

/// A request of a server during a call of the pipe.
pub(super) fn request(
    method: &'static str,
    params: Map<String, Value>,
    cx: &ToolContext,
) -> McpRequest {
    let progress = cx.clone();
    McpRequest {
        method,
        params: Arc::new(params),
        on_progress: Some(Arc::new(move |said| {
            let audience = toolcrib_core::Audience::Dashboard;
            progress.progress(Progress { audience, ..said });
        })),
        client: cx.handle::<toolcrib_core::ClientHandle>().ok().cloned(),
        cancellation: cx.cancellation().clone(),
    }
}

pub(super) fn uri_of(params: &Map<String, Value>) -> Result<Arc<str>, ErrorData> {
    match params.get("uri") {
        Some(Value::String(uri)) => Ok(uri.as_str().into()),
        _ => Err(ErrorData::invalid_params("the parameters need `uri`, a string", None)),
    }
}

pub(super) fn not_found(context: &RequestContext<'_>, uri: &str) -> ErrorData {
    let message = format!("there is no resource `{}`", shortened(uri));
    let data = Some(json!({ "uri": shortened(uri) }));
    match context.era {
        Era::Session(_) => ErrorData::new(Code::RESOURCE_NOT_FOUND, message, data),
        Era::Stateless(_) => ErrorData::invalid_params(message, data),
    }
}

/// A URI of a server whose own URI another server has.
fn qualified(server: &str, uri: &str) -> String {
    format!("mcp:{server}/{uri}")
}

/// Whether a URI may be an expansion of a template (RFC 6570): its literal parts occur in order. A
/// server decides whether it is one.
fn fits_template(template: &str, uri: &str) -> bool {
    let mut literals = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        literals.push(literal);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    if literals.is_empty() {
        return false;
    }
    let Some(mut at) = uri.strip_prefix(literals.remove(0)) else { return false };
    for literal in literals {
        match at.find(literal) {
            Some(found) => at = at.get(found + literal.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    at.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_a_template_by_its_literal_parts() {
        for (template, uri, fits) in [
            ("test://template/{id}/data", "test://template/123/data", true),
            ("test://template/{id}/data", "test://template/123", false),
            ("file:///{+path}", "file:///a/b.txt", true),
            ("file:///{+path}", "http://a", false),
            ("db://{table}/{row}{?q}", "db://a/1?q=2", true),
            ("db://{table}/{row}", "db://a", false),
            ("db://fixed", "db://fixed", false),
            ("{", "anything", true),
        ] {
            assert_eq!(fits_template(template, uri), fits, "{template} {uri}");
        }
    }
}
