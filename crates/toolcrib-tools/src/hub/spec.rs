use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_core::{
    Annotations, Capabilities, DefinitionCheck, IntoAvailability, ListOrder, Secrets, ToolName,
};
use toolcrib_scope::http::{DEFAULT_TIMEOUT, HttpClient, Method};

use super::{
    HttpHub, Inner,
    catalogue::Catalogue,
    error::{HubError, HubErrors, HubPart, HubProblem},
    listed::{CallParts, Definitions},
};
use crate::{
    Declaration,
    http::{
        HttpToolError, HttpToolPart, HttpToolProblem, HttpToolSpec,
        check::{is_pointer, read},
    },
};

/// What is declared of a hub. Start from [`new`](Self::new), set fields, and
/// [`build`](Self::build) it.
#[derive(Debug, Clone, PartialEq)]
pub struct HubSpec {
    /// What it is called: in the provider's id, `hub:NAME`, and as the toolset of its tools.
    pub name: String,
    /// Where the catalogue is, with places behind host and port.
    pub url: String,
    /// Names and values, the values with places.
    pub headers: Vec<(String, String)>,
    /// Where in the catalogue what stands.
    pub pointers: HubPointers,
    /// How a tool is called: method, URL, headers, body, and the part of the answer that counts. It
    /// needs a place for `{tool}`. Of what it declares of the tool, annotations, timeout and
    /// `max_result_chars` hold for all tools; name, description and schema are the catalogue's.
    /// Unless annotations are set, the worst is assumed, but for `GET` and `HEAD`.
    pub call: HttpToolSpec,
    /// What all names begin with; nothing unless set.
    pub prefix: String,
    /// In which order its tools are offered; by their own names unless set.
    pub order: ListOrder,
    /// How much is taken at most.
    pub limits: HubLimits,
    /// How long one page may take; 30 s unless set. For all of them, see
    /// [`with_timeout`](toolcrib_core::with_timeout()).
    pub timeout: Duration,
}

/// JSON pointers (RFC 6901) into the catalogue.
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

/// How much of a catalogue is taken; more is an error, since half a catalogue reads like a whole
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
    /// A hub whose catalogue is at a URL, and whose tools are called by a method and a URL; see the
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
        }
    }

    /// The secrets that its headers refer to, those of the catalogue's request and those of calls.
    pub fn secrets(&self) -> Vec<(HubPart, String)> {
        let of_catalogue = self.catalogue_request().secrets().into_iter();
        let of_calls = self.call.secrets().into_iter();
        of_catalogue
            .map(|(part, secret)| (HubPart::Catalogue(part), secret))
            .chain(of_calls.map(|(part, secret)| (HubPart::Call(part), secret)))
            .collect()
    }

    /// Reads all places and makes the hub. It asks and calls through the client, and so only where
    /// that one may go. `secrets` are those of the catalogue's request; those of a call come from the
    /// engine, as with any tool. Nobody is asked yet.
    ///
    /// # Errors
    /// All that is wrong with it, not only the first.
    pub fn build(
        self,
        client: &HttpClient,
        secrets: Option<Arc<dyn Secrets>>,
    ) -> Result<HttpHub, HubErrors> {
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
    ) -> Result<HttpHub, HubErrors> {
        let mut errors = Vec::new();
        self.check(&mut errors);
        let catalogue = read(self.catalogue_request(), client);
        let call = read(self.call_request(), client);
        errors.extend(catalogue.errors.into_iter().map(|error| of(HubPart::Catalogue, error)));
        let call_is_sound = call.errors.is_empty();
        errors.extend(call.errors.into_iter().map(|error| of(HubPart::Call, error)));
        let names_tool = call.used.iter().any(|place| place == "tool");
        if call_is_sound && !names_tool {
            let part = HubPart::Call(HttpToolPart::Url);
            errors.push(HubError { part, offset: None, problem: HubProblem::ToolNotNamed });
        }
        if !errors.is_empty() {
            return Err(HubErrors { tool: self.name, errors });
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
            catalogue: Catalogue {
                body: Arc::new(catalogue.body),
                needs_tenant: catalogue.used.iter().any(|place| place == "tenant"),
                needs_principal: catalogue.used.iter().any(|place| place == "principal"),
                takes_cursor: catalogue.used.iter().any(|place| place == "cursor"),
                pointers,
                limits,
                timeout,
            },
            definitions,
            secrets,
            seen: Mutex::new(VecDeque::new()),
        })))
    }

    fn check(&self, errors: &mut Vec<HubError>) {
        let mut wrong = |part, problem| errors.push(HubError { part, offset: None, problem });
        let HubPointers { list, name, description, schema, next } = &self.pointers;
        let pointers = [
            ("list", Some(list)),
            ("name", Some(name)),
            ("description", Some(description)),
            ("schema", Some(schema)),
            ("next", next.as_ref()),
        ];
        for (which, pointer) in pointers {
            if pointer.is_some_and(|pointer| !is_pointer(pointer)) {
                wrong(HubPart::Pointer(which), HubProblem::Pointer);
            }
        }
        if self.name.trim().is_empty() {
            wrong(HubPart::Name, HubProblem::NoName);
        }
        if let Err(error) = ToolName::fitted(&self.prefix, &self.name, "x") {
            wrong(HubPart::Prefix, HubProblem::Prefix(error));
        }
        let HubLimits { pages, tools, bytes } = self.limits;
        if pages == 0 || tools == 0 || bytes == 0 {
            wrong(HubPart::Limits, HubProblem::NoLimit);
        }
    }

    fn catalogue_request(&self) -> HttpToolSpec {
        let declaration = Declaration {
            input_schema: places(&["tenant", "principal"], &["cursor"]),
            ..Declaration::new("catalogue", "The catalogue of a hub.")
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

/// What is wrong with a request, as what is wrong with the hub.
fn of(part: fn(HttpToolPart) -> HubPart, error: HttpToolError) -> HubError {
    HubError {
        part: part(error.part),
        offset: error.offset,
        problem: match error.problem {
            HttpToolProblem::UnknownParameter { parameter, declared } => {
                HubProblem::UnknownPlace { place: parameter, known: declared }
            }
            other => HubProblem::Http(other),
        },
    }
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
