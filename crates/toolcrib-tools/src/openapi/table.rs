//! `[[tool]]` of the kind `openapi`.

use std::sync::Arc;

use toolcrib_capabilities::http::{DEFAULT_MAX_BODY_BYTES, HeaderName, HttpClient, parse_url};
use toolcrib_config::{Diagnostic, Located, Problems, Spot, Table, Value, suggest};
use toolcrib_core::{Annotations, Capabilities, Tool, ToolName};

use super::{
    document::{MAX_DOCUMENT, OpenApi, Outline},
    plan::{CompiledOperation, MakeOptions, Plan, description, make},
    run::Call,
    schema::{LARGEST, SchemaLimit},
    security::{Auth, Place, parameter_place, schemes},
    select::Selector,
};
use crate::{
    BuiltTool, Declaration, DeclaredKind, DocumentTable, ExpandedTool, ExternalAccess, KindForm,
    KindPorts, KindReader, ThirdPartyDefinition, ToolErrors,
    findings::Findings,
    http::{
        HttpToolSpec, Method,
        check::{Names, header_field, read},
        exchange::Exchange,
        table::{BODY_BYTES, read_addresses, read_bytes, read_headers, read_redirects},
    },
    kind::boxed,
    template::SECRET,
};

pub(crate) const KIND: KindReader = KindReader {
    word: "openapi",
    keys: &["file", "include", "exclude", "server", "allow_servers", "auth", "lint_allow", "pin"],
    form: KindForm::Document,
    read: |table| boxed([DeclaredOpenApi::read(table)]),
};

/// The `server` of a new project over a document without an absolute URL, to be replaced.
pub const SERVER_PLACEHOLDER: &str = "https://api.example.com";

/// The most tools of one document.
const MOST_TOOLS: usize = 5_000;

/// The bytes that the schemas of a document may have in any case.
const SMALL: usize = 256 * 1024;

/// A document and its settings, as read from a table.
#[derive(Debug)]
pub(super) struct DeclaredOpenApi {
    /// The file of the document; `None` if it cannot be read, which is recorded.
    pub(super) file: Option<Located<Arc<str>>>,
    pub(super) include: Vec<Located<Arc<str>>>,
    pub(super) exclude: Vec<Located<Arc<str>>>,
    pub(super) server: Option<Located<Arc<str>>>,
    pub(super) allow_servers: Vec<Located<Arc<str>>>,
    pub(super) reads_only: bool,
    pub(super) auth: Auth,
    /// The names of security schemes in `auth`.
    pub(super) schemes: Vec<Located<Arc<str>>>,
    pub(super) shared: Arc<Shared>,
}

/// The settings of all tools of a document.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) headers: Vec<(String, String)>,
    pub(super) allow_addresses: Vec<Located<Arc<str>>>,
    pub(super) max_body_bytes: usize,
    pub(super) max_redirects: usize,
    pub(super) lint_allow: Vec<Located<Arc<str>>>,
    pub(super) pin: bool,
}

/// A tool of a document.
#[derive(Debug)]
pub(super) struct DeclaredOperation {
    /// The file of the document.
    file: Arc<str>,
    plan: Result<Box<Plan>, Arc<str>>,
    /// The schemas of arguments and results as JSON: only the tools have them as values.
    input_schema: Box<str>,
    output_schema: Option<Box<str>>,
    /// The secrets of its credentials as written.
    secrets: Vec<String>,
    shared: Arc<Shared>,
}

impl DeclaredOpenApi {
    fn read(table: &Table<'_>) -> Self {
        if table.has("url")
            && let Some(url) = table.value("url")
        {
            let help = "save the document in the project, and write `file`; `toolcrib init NAME \
                        --from URL` does both";
            url.refuse("a document is not read from a URL", help);
        }
        table.explain("description", "each tool has the description of its operation");
        let file = table.required("file", "\"openapi.yaml\"").and_then(|file| file.text());
        let server = table.value("server").and_then(|server| server_url(&server));
        let headers = table.value("headers").map(|headers| read_headers(&headers).0);
        let (auth, schemes) = table.value("auth").map(|auth| read_auth(&auth)).unwrap_or_default();
        Self {
            file,
            include: table.texts("include"),
            exclude: table.texts("exclude"),
            server,
            allow_servers: table.texts("allow_servers"),
            reads_only: table.boolean("read_only").unwrap_or_default(),
            auth,
            schemes,
            shared: Arc::new(Shared {
                headers: headers.unwrap_or_default(),
                allow_addresses: read_addresses(table, "allow_addresses"),
                max_body_bytes: read_bytes(table, BODY_BYTES, DEFAULT_MAX_BODY_BYTES),
                max_redirects: read_redirects(table),
                lint_allow: table.texts("lint_allow"),
                pin: table.boolean("pin").unwrap_or(true),
            }),
        }
    }

    /// The tools of the document, each with its name and declaration. All else is as in `base`.
    /// `prefix` begins all names. Problems are recorded at `at`, or at the pattern.
    pub(super) fn tools(
        &self,
        document: &OpenApi,
        base: &Declaration,
        prefix: Option<&str>,
        (at, problems): (&Spot, &Problems),
    ) -> Vec<(ToolName, Declaration, DeclaredOperation)> {
        let file = self.file.as_ref().map(|file| Arc::clone(&file.value)).unwrap_or_default();
        let operations = document.operations();
        let start = prefix.map(|prefix| format!("{prefix}_")).unwrap_or_default();
        let names = OpenApi::names(&operations, &start);
        let selected = self.select(&operations, names, (&file, problems));
        self.report_unknown_schemes(document, &operations, &file, problems);
        let warn = |message, help| problems.push(Diagnostic::warning(at, message).help(help));
        for (flaw, help) in document.flaws(&operations) {
            warn(format!("`{file}` {flaw}"), help);
        }
        let others = document.other_operations();
        if !others.is_empty() {
            let others = suggest::quoted(others.iter().map(String::as_str));
            let message = format!("operations of `{file}` are left out: {others}");
            let help = "a document of OpenAPI 3.2 is read as 3.1, without the methods new in it";
            warn(message, help);
        }
        if selected.len() > MOST_TOOLS {
            let message = format!("`{file}` has more than {MOST_TOOLS} operations");
            problems.push(Diagnostic::error(at, message).help("choose some with `include`"));
            return Vec::new();
        }
        if selected.is_empty() {
            let message = format!("`{file}` has no operation that becomes a tool");
            problems.push(Diagnostic::warning(at, message));
        }
        let made = self.made(document, &selected, (&file, at, problems));
        report_omissions(&selected, &made, (&file, at, problems));
        let toolset = base.toolset.clone();
        let toolset = toolset.unwrap_or_else(|| prefix.unwrap_or_else(|| stem(&file)).into());
        let base = Declaration { toolset: Some(toolset), ..base.clone() };
        let tool = |((one, name), made): ((&Outline<'_>, ToolName), _)| {
            let mut declaration = Declaration {
                name: name.to_string(),
                description: description(one),
                annotations: annotations(&one.method),
                ..base.clone()
            };
            let operation = self.operation(&file, made, &mut declaration.input_schema);
            (name, declaration, operation)
        };
        selected.into_iter().zip(made).map(tool).collect()
    }

    /// The operations that the patterns choose, of those with a name. Warns of each pattern without any.
    fn select<'o, 'd>(
        &'o self,
        operations: &'o [Outline<'d>],
        names: Vec<Option<ToolName>>,
        (file, problems): (&str, &Problems),
    ) -> Vec<(&'o Outline<'d>, ToolName)> {
        let selectors = |patterns: &'o [Located<Arc<str>>]| -> Vec<_> {
            patterns.iter().map(|pattern| (pattern, Selector::new(&pattern.value))).collect()
        };
        let (include, exclude) = (selectors(&self.include), selectors(&self.exclude));
        for (pattern, selector) in include.iter().chain(&exclude) {
            let mut all = operations.iter().zip(&names);
            if !all.any(|(one, name)| selector.matches(one, name.as_deref().unwrap_or_default())) {
                let message = format!("no operation of `{file}` matches `{}`", pattern.value);
                let help = "write tag:NAME, a path such as /v1/*, a method such as GET, or an \
                            operationId";
                problems.push(Diagnostic::warning(&pattern.at, message).help(help));
            }
        }
        let is_selected = |(one, name): &(&Outline<'_>, ToolName)| {
            let is_in = |all: &[(_, Selector)]| all.iter().any(|(_, all)| all.matches(one, name));
            let reads = matches!(one.method, Method::GET | Method::HEAD);
            (include.is_empty() || is_in(&include))
                && !is_in(&exclude)
                && (reads || !self.reads_only)
        };
        let named = operations.iter().zip(names).filter_map(|(one, name)| Some((one, name?)));
        named.filter(is_selected).collect()
    }

    /// An operation of a tool, whose arguments `input_schema` then names. One that did not compile has the reason.
    fn operation(
        &self,
        file: &Arc<str>,
        made: Result<CompiledOperation, String>,
        input_schema: &mut serde_json::Value,
    ) -> DeclaredOperation {
        let (plan, schema, output_schema) = match made {
            Ok(made) => {
                *input_schema = outline(made.arguments);
                (Ok(Box::new(made.plan)), made.input_schema.json, made.output_schema)
            }
            Err(flaw) => (Err(Arc::from(flaw)), Box::default(), None),
        };
        let credentials = plan.iter().flat_map(|plan| &plan.credentials);
        DeclaredOperation {
            file: Arc::clone(file),
            secrets: credentials.map(|one| format!("{SECRET}{}", one.secret)).collect(),
            plan,
            input_schema: schema,
            output_schema,
            shared: Arc::clone(&self.shared),
        }
    }

    /// The operations. Their schemas together have at most one and a half times the bytes of the document, since
    /// their values take twenty times as much memory: operations that share a large schema would otherwise each
    /// have a copy. The largest ones lose levels.
    fn made(
        &self,
        document: &OpenApi,
        selected: &[(&Outline<'_>, ToolName)],
        (file, at, problems): (&str, &Spot, &Problems),
    ) -> Vec<Result<CompiledOperation, String>> {
        let headers = self.shared.headers.iter();
        let mut options = MakeOptions {
            server: self.server.as_ref().map(|server| server.value.to_string()),
            allow_servers: self.allow_servers.iter().map(|url| url.value.to_string()).collect(),
            auth: self.auth.clone(),
            headers: headers.filter_map(|(name, _)| HeaderName::try_from(name).ok()).collect(),
            schema_limit: SchemaLimit { largest: LARGEST, is_measured: false },
        };
        let most = (document.bytes + document.bytes / 2).max(SMALL);
        let (mut all, mut sizes, mut total) = (Vec::new(), Vec::new(), 0);
        for (one, _) in selected {
            let made = make(document, one, &options);
            let of_schemas = made.iter().flat_map(|made| {
                [Some(&made.input_schema.json), made.output_schema.as_ref()].into_iter().flatten()
            });
            for size in of_schemas.map(|json| json.len()) {
                sizes.push(size);
                total += size;
            }
            match total <= most {
                true => all.push(made),
                // They are made again with fewer levels.
                false => {
                    all.clear();
                    options.schema_limit.is_measured = true;
                }
            }
        }
        if total <= most {
            return all;
        }
        let largest = share(sizes, most);
        options.schema_limit = SchemaLimit { largest, is_measured: false };
        let message = format!(
            "the schemas of `{file}` are shortened to {} bytes each: together they have {total} bytes, and the \
             document {}",
            largest, document.bytes
        );
        let help = "choose operations with `include`; what a shortened schema leaves out, the server checks";
        problems.push(Diagnostic::warning(at, message).help(help));
        selected.iter().map(|(one, _)| make(document, one, &options)).collect()
    }

    /// Records the names in `auth` that are neither security schemes nor parameters of the document.
    fn report_unknown_schemes(
        &self,
        document: &OpenApi,
        operations: &[Outline<'_>],
        file: &str,
        problems: &Problems,
    ) {
        if self.schemes.is_empty() {
            return;
        }
        let known: Vec<&str> =
            schemes(document).into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let is_known = |named: &str| {
            known.contains(&named)
                || fillable(document, operations).any(|(name, place)| place.is_named(name, named))
        };
        for scheme in self.schemes.iter().filter(|scheme| !is_known(&scheme.value)) {
            let shown = suggest::quoted([&*scheme.value]);
            let message = format!(
                "`{file}` declares no security scheme {shown}, nor a parameter of this name in a \
                 header, the query or a cookie"
            );
            let help = suggest::help(&scheme.value, "security schemes", known.iter().copied());
            problems.push(Diagnostic::error(&scheme.at, message).help(help));
        }
    }
}

/// The size of the largest schemas, if all together may have `most` bytes and smaller ones stay as they are.
fn share(mut sizes: Vec<usize>, most: usize) -> usize {
    sizes.sort_unstable();
    let (mut left, mut count) = (most, sizes.len());
    for size in sizes {
        if size.saturating_mul(count) > left {
            break;
        }
        left -= size;
        count -= 1;
    }
    left / count.max(1)
}

/// Warns of what calls never send, and what only the server checks.
fn report_omissions(
    selected: &[(&Outline<'_>, ToolName)],
    made: &[Result<CompiledOperation, String>],
    (file, at, problems): (&str, &Spot, &Problems),
) {
    /// The most names in a warning.
    const SHOWN: usize = 5;
    let warn = |all: &mut dyn Iterator<Item = &str>, what: &str, help: &str| {
        let (mut shown, mut count) = (Vec::new(), 0);
        for one in all {
            count += 1;
            if shown.len() < SHOWN && !shown.contains(&one) {
                shown.push(one);
            }
        }
        if count > 0 {
            let more = if count > shown.len() { ", …" } else { "" };
            let message = format!("{what} of `{file}`: {}{more}", suggest::quoted(shown));
            problems.push(Diagnostic::warning(at, message).help(help));
        }
    };
    let callable =
        || selected.iter().zip(made).filter_map(|(one, made)| Some((one, made.as_ref().ok()?)));
    let bodies = callable().filter(|(_, made)| made.drops_body);
    warn(
        &mut bodies.map(|((_, name), _)| name.as_str()),
        "an optional body of GET or HEAD is never sent by operations",
        "the other arguments are sent",
    );
    let patterns = callable().flat_map(|(_, made)| &made.input_schema.left_patterns);
    warn(
        &mut patterns.map(String::as_str),
        "only the server checks some patterns",
        "they are of another dialect, such as ECMA-262 with look-around, or too large",
    );
}

/// The names of arguments, as a schema.
fn outline(arguments: Vec<String>) -> serde_json::Value {
    let properties: serde_json::Map<_, _> =
        arguments.into_iter().map(|name| (name, serde_json::Value::Bool(true))).collect();
    serde_json::json!({ "type": "object", "properties": properties })
}

/// The names and places of the parameters that a secret can fill.
fn fillable<'d>(
    document: &'d OpenApi,
    operations: &[Outline<'d>],
) -> impl Iterator<Item = (&'d str, Place)> {
    let lists = operations.iter().flat_map(|one| [one.item, one.operation]);
    let all = lists.filter_map(|map| map.get("parameters")?.as_array()).flatten();
    all.filter_map(|one| parameter_place(document.resolved(one).ok()?.as_object()?))
}

/// The effects that a method has by its definition (RFC 9110).
fn annotations(method: &Method) -> Annotations {
    Annotations {
        read_only: matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS),
        destructive: *method == Method::DELETE,
        idempotent: matches!(*method, Method::PUT | Method::DELETE),
    }
}

/// The name of a file without its folder and extensions.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or_default();
    name.split('.').find(|part| !part.is_empty()).unwrap_or("openapi")
}

fn server_url(value: &Value<'_>) -> Option<Located<Arc<str>>> {
    let url = value.text()?;
    if url.value.trim_end_matches('/') == SERVER_PLACEHOLDER {
        let message = "`server` is still the placeholder of a new project";
        let help = "write the base URL of the API";
        value.problems().push(Diagnostic::warning(&url.at, message).help(help));
    }
    let problem = match parse_url(&url.value) {
        Ok(_) if !url.value.contains(['?', '#', '{', '}']) => return Some(url),
        Ok(_) => "it has a query, a fragment or a place".to_owned(),
        Err(error) => error.to_string(),
    };
    let help = "write the base URL, such as \"https://api.example.com/v1\"";
    value.refuse(format!("`server` cannot be used: {problem}"), help);
    None
}

/// The secrets, and the names of their security schemes.
fn read_auth(value: &Value<'_>) -> (Auth, Vec<Located<Arc<str>>>) {
    let secret = |value: &Value<'_>| {
        let text = value.text()?;
        let name = text.value.strip_prefix(SECRET).map(str::trim);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        match name.filter(|name| !name.is_empty() && name.chars().all(is_plain)) {
            Some(name) => Some(Arc::<str>::from(name)),
            None => {
                let help = "write \"secret:NAME\", and declare NAME below `[secrets]`";
                value.refuse("this is not a reference to a secret", help);
                None
            }
        }
    };
    if !value.is_table() {
        return (Auth { any: secret(value), by_scheme: Vec::new() }, Vec::new());
    }
    let entries = value.entries("`auth`");
    let (schemes, by_scheme) = entries
        .iter()
        .flat_map(Table::rest)
        .filter_map(|(name, value)| Some((name.clone(), (name.value, secret(&value)?))))
        .unzip();
    (Auth { any: None, by_scheme }, schemes)
}

impl DeclaredOperation {
    /// Makes the tool. An operation that cannot be called becomes a tool that is never offered, with
    /// the reason. Where credentials are optional, they are left out unless `has_secret` is true for each.
    ///
    /// # Errors
    /// All that is wrong with the headers.
    pub(super) fn tool(
        &self,
        mut declaration: Declaration,
        client: &HttpClient,
        has_secret: impl Fn(&str) -> bool,
    ) -> Result<Tool, ToolErrors> {
        if let Ok(schema) = serde_json::from_str(&self.input_schema) {
            declaration.input_schema = schema;
        }
        let mut plan = match &self.plan {
            Ok(plan) => (**plan).clone(),
            Err(flaw) => return placeholder(declaration, Arc::clone(flaw)),
        };
        if plan.credentials.iter().any(|one| one.is_optional && !has_secret(&one.secret)) {
            plan.credentials.retain(|one| !one.is_optional);
        }
        let of_headers = Declaration {
            source: declaration.source.clone(),
            ..Declaration::new(declaration.name.clone(), "The headers.")
        };
        let spec = HttpToolSpec {
            headers: self.shared.headers.clone(),
            ..HttpToolSpec::new(of_headers, Method::GET, &plan.server)
        };
        let secrets = spec.secrets().into_iter().map(|(_, name)| name);
        let secrets: Vec<_> = secrets
            .chain(plan.credentials.iter().map(|credential| credential.secret.to_string()))
            .collect();
        let headers = read(spec, client, Names::OfHub);
        if !headers.found.errors.is_empty() {
            return Err(ToolErrors { tool: declaration.name, errors: headers.found.errors });
        }
        let call = Call {
            exchange: Exchange {
                client: client.clone(),
                pointer: None,
                max_body_bytes: self.shared.max_body_bytes,
                max_redirects: self.shared.max_redirects,
                read_only: declaration.annotations.read_only,
            },
            plan,
            headers: headers.body.headers,
        };
        let mut builder = declaration
            .clone()
            .into_builder()
            .foreign_definition()
            .capabilities(Capabilities::none().secrets(secrets))
            .open_world();
        if let Some(Ok(schema)) = self.output_schema.as_deref().map(serde_json::from_str) {
            builder = builder.output_schema(schema);
        }
        builder.body(call).or_else(|invalid| placeholder(declaration, invalid.to_string().into()))
    }
}

/// A document has its operations in its place before it could be asked.
impl DeclaredKind for DeclaredOpenApi {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        Vec::new()
    }

    fn expand(&self, table: &DocumentTable<'_>) -> Option<Vec<ExpandedTool>> {
        let read = self.file.as_ref().and_then(|file| (table.read)(file, MAX_DOCUMENT));
        let Some((text, start)) = read else { return Some(Vec::new()) };
        let parsed = OpenApi::parse(&text).map_err(|error| {
            table.problems.push(Diagnostic::error(&start, error.to_string()));
        });
        let DocumentTable { base, prefix, at, problems, .. } = *table;
        let tools = parsed.map(|document| self.tools(&document, base, prefix, (at, problems)));
        let boxed = tools.into_iter().flatten().map(|(name, declaration, operation)| {
            (name, declaration, Box::new(operation) as Box<dyn DeclaredKind>)
        });
        Some(boxed.collect())
    }

    fn build(&self, _: Declaration, _: &dyn KindPorts) -> BuiltTool {
        None
    }
}

/// A tool that is never offered, since its operation has a flaw.
fn placeholder(declaration: Declaration, flaw: Arc<str>) -> Result<Tool, ToolErrors> {
    let found = Findings::of(&declaration).finish();
    let name = declaration.name.clone();
    let blank =
        Declaration { input_schema: serde_json::json!({ "type": "object" }), ..declaration };
    let made = blank
        .into_builder()
        .foreign_definition()
        .open_world()
        .available_if(move || Err::<(), _>(Arc::clone(&flaw)))
        .handler(|_: serde_json::Value, _| async { "not available" });
    found.or_tool(name, made)
}

impl DeclaredKind for DeclaredOperation {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        let allow_addresses = &self.shared.allow_addresses;
        let plan = self.plan.iter();
        let access = plan.map(|plan| ExternalAccess::Host {
            url: &plan.server,
            url_field: "/url",
            allow_addresses,
            addresses_key: "allow_addresses",
        });
        access.collect()
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        let credentials = self.secrets.iter().map(|text| ("/auth".to_owned(), text.as_str()));
        let headers = self.shared.headers.iter();
        let headers = headers.map(|(name, value)| (header_field(name).pointer(), value.as_str()));
        credentials.chain(headers.filter(|_| self.plan.is_ok())).collect()
    }

    fn third_party(&self) -> Option<ThirdPartyDefinition<'_>> {
        let target = self.plan.as_ref().map(|plan| {
            let path: Vec<_> = plan.path.iter().map(|segment| format!("{segment:?}")).collect();
            serde_json::json!([plan.method.as_str(), plan.server, path.join("/")])
        });
        Some(ThirdPartyDefinition {
            file: &self.file,
            lint_allow: &self.shared.lint_allow,
            is_pinned: self.shared.pin,
            target: target.unwrap_or_default(),
            withheld: self.plan.as_ref().err().map(|flaw| &**flaw),
        })
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        let addresses = if self.plan.is_ok() { &*self.shared.allow_addresses } else { &[] };
        let client = ports.http_client(addresses);
        Some(self.tool(declaration, &client, |secret| ports.has_secret(secret)))
    }
}
