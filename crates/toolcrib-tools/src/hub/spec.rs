use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use serde_json::{Value, json};
use toolcrib_capabilities::http::{DEFAULT_TIMEOUT, HttpClient, Method};
use toolcrib_core::{
    __internal::LruCache, Annotations, Capabilities, DefinitionCheck, IntoAvailability, ListOrder,
    Secrets, ToolName,
};

use super::{
    HttpHub, Inner, MOST_REMEMBERED,
    catalog::HubCatalog,
    listed::{CallParts, Definitions},
};
use crate::{
    Declaration, FieldError, Source, ToolErrors,
    findings::{Field, Findings},
    http::{
        HttpToolSpec,
        check::{Names, is_pointer, read},
    },
};

/// The declaration of a hub. Start from [`new`](Self::new), set fields, and
/// [`build`](Self::build) it.
#[derive(Debug, Clone, PartialEq)]
pub struct HubSpec {
    /// Its name: in the provider's id, `hub:NAME`, and as the toolset of its tools.
    pub name: String,
    /// Where the catalog is, with places behind host and port.
    pub url: String,
    /// Names and values, the values with places.
    pub headers: Vec<(String, String)>,
    /// The places of the parts in the catalog.
    pub pointers: HubPointers,
    /// How a tool is called: method, URL, headers, body, and the part of the answer that counts. It
    /// needs a place for `{tool}`. Of what it declares of the tool, annotations, timeout and
    /// `max_result_chars` apply to all tools; name, description and schema are the catalog's.
    /// Unless annotations are set, the worst is assumed, but for `GET` and `HEAD`.
    pub call: HttpToolSpec,
    /// The prefix of all names; empty unless set.
    pub prefix: String,
    /// In which order its tools are offered; by their own names unless set.
    pub order: ListOrder,
    /// How much is taken at most.
    pub limits: HubLimits,
    /// How long one page may take; 30 s unless set. For all of them, see
    /// [`with_timeout`](toolcrib_core::with_timeout()).
    pub timeout: Duration,
    /// The table that it was read from, for the places of errors; [`Source::default`] for code.
    pub source: Source,
}

/// JSON pointers (RFC 6901) into the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubPointers {
    /// To the list of tools in a page; the page itself (`""`) unless set.
    pub list: String,
    /// To the name in a tool; `/name` unless set.
    pub name: String,
    /// To the description in a tool; `/description` unless set. One without is described by its
    /// name.
    pub description: String,
    /// To the JSON Schema of the arguments in a tool; `/input_schema` unless set. One without takes
    /// any object.
    pub schema: String,
    /// To what leads to the next page, in a page; there is one page unless set.
    pub next: Option<String>,
}

impl Default for HubPointers {
    fn default() -> Self {
        Self {
            list: String::new(),
            name: "/name".to_owned(),
            description: "/description".to_owned(),
            schema: "/input_schema".to_owned(),
            next: None,
        }
    }
}

/// How much of a catalog is taken; more is an error, since half a catalog reads like a whole
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubLimits {
    /// How many pages; 100 unless set.
    pub pages: usize,
    /// How many tools; 10,000 unless set.
    pub tools: usize,
    /// How many bytes, over all pages; 16 MiB unless set.
    pub bytes: usize,
}

impl Default for HubLimits {
    fn default() -> Self {
        Self { pages: 100, tools: 10_000, bytes: 16 * 1024 * 1024 }
    }
}

impl HubSpec {
    /// A hub whose catalog is at a URL, and whose tools are called by a method and a URL; see the
    /// fields for the defaults. Set [`call`](Self::call) for headers and body.
    pub fn new(
        name: impl Into<String>,
        url: impl Into<String>,
        call_method: Method,
        call_url: impl Into<String>,
    ) -> Self {
        let declaration = Declaration {
            annotations: Annotations {
                destructive: !matches!(call_method, Method::GET | Method::HEAD),
                ..Annotations::default()
            },
            ..Declaration::new("tool", "A tool of a hub.")
        };
        Self {
            name: name.into(),
            url: url.into(),
            headers: Vec::new(),
            pointers: HubPointers::default(),
            call: HttpToolSpec::new(declaration, call_method, call_url),
            prefix: String::new(),
            order: ListOrder::default(),
            limits: HubLimits::default(),
            timeout: DEFAULT_TIMEOUT,
            source: Source::default(),
        }
    }

    /// The secrets in its headers, of the catalog's request and of calls, each with its field as in
    /// [`FieldError::field`].
    pub fn secrets(&self) -> Vec<(String, String)> {
        let of_calls = self.call.secrets().into_iter();
        let of_calls = of_calls.map(|(field, secret)| (format!("/call{field}"), secret));
        self.catalog_request().secrets().into_iter().chain(of_calls).collect()
    }

    /// Reads all places and makes the hub. It asks and calls through the client, and so only where
    /// that one may go. `secrets` are those of the catalog's request; those of a call come from the
    /// engine, as with any tool. Sends no request yet.
    ///
    /// # Errors
    /// All that is wrong with it, not only the first.
    pub fn build(
        self,
        client: &HttpClient,
        secrets: Option<Arc<dyn Secrets>>,
    ) -> Result<HttpHub, ToolErrors> {
        self.build_checked(client, secrets, None, || true)
    }

    /// The same, with tools that are offered only if a check of their definitions does not refuse them,
    /// and only while another says that they are available, such as that the secrets of a call can be
    /// had; see [`available_if`](toolcrib_core::ToolBuilder::available_if).
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_checked<A: IntoAvailability>(
        self,
        client: &HttpClient,
        secrets: Option<Arc<dyn Secrets>>,
        definition_check: Option<DefinitionCheck>,
        check: impl Fn() -> A + Send + Sync + 'static,
    ) -> Result<HttpHub, ToolErrors> {
        let mut errors = self.check();
        let catalog = read(self.catalog_request(), client, Names::OfHub);
        let call = read(self.call_request(), client, Names::OfHub);
        errors.extend(catalog.found.errors);
        let names_tool = call.used.iter().any(|place| place == "tool");
        let mut of_call = call.found.errors;
        if of_call.is_empty() && !names_tool {
            let source = &self.call.declaration.source;
            let schema = Value::Null;
            let mut found = Findings::new(source, &schema);
            let message = "nothing says which tool is called; write `{tool}` into the URL, a \
                           header or the body";
            found.wrong(&Field::new("the URL", "/url"), None, message);
            of_call = found.finish().errors;
        }
        errors.extend(of_call.into_iter().map(in_call));
        if !errors.is_empty() {
            return Err(ToolErrors { tool: self.name, errors });
        }
        let capabilities =
            Capabilities::none().secrets(self.call.secrets().into_iter().map(|(_, name)| name));
        let call = CallParts::new(call.body, &call.used);
        let Self { name, pointers, call: declared, prefix, order, limits, timeout, .. } = self;
        let definitions = Definitions::new(&name, prefix, declared.declaration, capabilities, call)
            .in_order(order)
            .definition_check(definition_check)
            .available_if(move || check().into_availability());
        Ok(HttpHub(Arc::new(Inner {
            catalog: HubCatalog {
                body: Arc::new(catalog.body),
                needs_tenant: catalog.used.iter().any(|place| place == "tenant"),
                needs_principal: catalog.used.iter().any(|place| place == "principal"),
                takes_cursor: catalog.used.iter().any(|place| place == "cursor"),
                origin: Arc::clone(definitions.origin()),
                pointers: Arc::new(pointers),
                limits,
                timeout,
            },
            definitions: Arc::new(definitions),
            secrets,
            seen: Mutex::new(LruCache::new(MOST_REMEMBERED)),
        })))
    }

    fn check(&self) -> Vec<FieldError> {
        let schema = Value::Null;
        let mut found = Findings::new(&self.source, &schema);
        let HubPointers { list, name, description, schema, next } = &self.pointers;
        let pointers = [
            ("list", Some(list)),
            ("name", Some(name)),
            ("description", Some(description)),
            ("schema", Some(schema)),
            ("next", next.as_ref()),
        ];
        for (key, pointer) in pointers {
            if pointer.is_some_and(|pointer| !is_pointer(pointer)) {
                let field = Field::new(format!("`{key}`"), format!("/{key}"));
                let message = "this is no JSON pointer; write `/data/tools`, with `~1` for a `/` \
                               inside a key and `~0` for a `~`";
                found.wrong(&field, None, message);
            }
        }
        if self.name.trim().is_empty() {
            let message = "it is blank; events and messages contain it";
            found.wrong(&Field::new("the name", ""), None, message);
        }
        if let Err(error) = ToolName::fitted(&self.prefix, &self.name, "x") {
            found.wrong(&Field::new("`prefix`", "/prefix"), None, error);
        }
        let HubLimits { pages, tools, bytes } = self.limits;
        if pages == 0 || tools == 0 || bytes == 0 {
            let message = "one of them is 0; each must be at least 1";
            found.wrong(&Field::new("the limits", "/limits"), None, message);
        }
        found.finish().errors
    }

    fn catalog_request(&self) -> HttpToolSpec {
        let declaration = Declaration {
            input_schema: places(&["tenant", "principal"], &["cursor"]),
            source: self.source.clone(),
            ..Declaration::new("catalog", "The catalog of a hub.")
        };
        let spec = HttpToolSpec::new(declaration, Method::GET, &self.url);
        HttpToolSpec { headers: self.headers.clone(), ..spec }
    }

    fn call_request(&self) -> HttpToolSpec {
        let mut spec = self.call.clone();
        spec.declaration.input_schema = places(&["tenant", "principal", "tool", "arguments"], &[]);
        spec
    }
}

/// An error in `call` as an error in the hub.
fn in_call(error: FieldError) -> FieldError {
    let (field, message) =
        (format!("/call{}", error.field), format!("in `call`, {}", error.message));
    FieldError { field, message, ..error }
}

/// A schema whose properties are places.
fn places(required: &[&str], optional: &[&str]) -> Value {
    let all = required.iter().chain(optional).map(|name| ((*name).to_owned(), json!({})));
    json!({
        "type": "object",
        "properties": all.collect::<serde_json::Map<_, _>>(),
        "required": required,
    })
}
