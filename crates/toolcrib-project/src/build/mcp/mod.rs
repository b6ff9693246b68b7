//! Builds clients of MCP servers from sections and files. Starts and connects nothing.

mod callers;
pub(crate) mod server;
mod value;

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use toolcrib_capabilities::{
    http::HttpClient,
    process::{self, SandboxTier},
};
use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};
use toolcrib_core::{Glob, Secret};
use toolcrib_engine::{OnFailure, Redactor};
use toolcrib_mcp::{
    McpClient, McpClientBuilder, ServerName, mcp_client,
    server::{FileOAuth, FileTimeouts, FileTools, Http, Stdio, Transport},
};

use self::{
    callers::{CallerOverrides, DeclaredCaller},
    server::McpServer,
    value::{Template, Values, WrittenSecret},
};
use super::{lint::definition_check, process_limit::report_unlimited_processes};
use crate::{
    bind::{
        grant::allowed_addresses,
        located::values,
        mcp_files::{McpFiles, softened},
        names::Names,
        sandbox::SandboxedProgram,
    },
    file::{
        CallerSection, EndpointSection, McpSection, McpSettings, Pair, ProgramSection,
        REMOTE_ON_FAILURE, Text, TransportSection,
    },
    read::root::Root,
    user::{
        lock::Lock,
        secrets::ProjectSecrets,
        server_log::{self, ServerLog},
        shared_tokens::TokenPlace,
        state::StateFolder,
    },
};

/// The inputs to build servers.
pub(crate) struct McpSources<'a> {
    pub(crate) sections: &'a [McpSection],
    pub(crate) files: &'a McpFiles,
    pub(crate) secrets: &'a ProjectSecrets,
    pub(crate) names: &'a Names,
    pub(crate) root: &'a Root,
    /// Whether child processes of imported servers may outlive them.
    pub(crate) allow_stray_children: bool,
    /// The imported servers that are trusted.
    pub(crate) trusted: &'a [String],
    /// The lint rules of imported servers that withhold nothing, by the server's name.
    pub(crate) lint_allow: &'a [(String, String)],
    /// The options by which a command finds this project.
    pub(crate) flags: &'a str,
    pub(crate) lock: &'a Lock,
    /// Where the stderr of programs is written; `None` if calls are not run.
    pub(crate) logs: Option<&'a StateFolder>,
    /// Where logins are kept.
    pub(crate) tokens: &'a TokenPlace,
    /// Knows the secrets of all servers, and the tokens that they get later.
    pub(crate) redactor: &'a Redactor,
    pub(crate) problems: &'a Problems,
}

/// One server before it is built.
struct ServerPlan<'a> {
    name: &'a Arc<str>,
    at: &'a Spot,
    /// Its transport, else why it cannot be used.
    transport: Result<Transport, Arc<str>>,
    per_caller: CallerOverrides,
    secrets: Vec<String>,
    settings: Option<&'a McpSettings>,
    /// The restrictions of the file that declares it.
    tools: Option<&'a FileTools>,
    /// The client that this file declares for logins.
    oauth: Option<&'a FileOAuth>,
    timeouts: FileTimeouts,
    is_imported: bool,
}

impl ServerPlan<'_> {
    /// Whether a file of `mcp_files` or `--import` declares it: then only a `[mcp.NAME]` of the
    /// project sets its sandbox.
    fn is_of_file(&self) -> bool {
        self.tools.is_some()
    }
}

/// Why a server has no client.
enum ServerProblem {
    /// Recorded already.
    Told(Arc<str>),
    /// To be recorded.
    Error(Box<Diagnostic>),
}

impl ServerProblem {
    fn error(problem: Diagnostic) -> Self {
        Self::Error(Box::new(problem))
    }
}

impl McpSources<'_> {
    /// The servers: those of sections in the order of the project file, then those of files.
    pub(crate) fn build(&self) -> Vec<McpServer> {
        self.report_invalid_sections();
        let of_sections = self.sections.iter().filter_map(|section| self.of_section(section));
        let of_files = self.files.servers.iter().filter_map(|declared| {
            let server = &declared.server;
            let transport = match &declared.unusable {
                Some(reason) => Err(Arc::clone(reason)),
                None => Ok(server.transport.clone()?),
            };
            let section = self.sections.iter().find(|section| section.name.value == server.name);
            Some(ServerPlan {
                name: &server.name,
                at: &server.at,
                transport,
                per_caller: CallerOverrides::default(),
                secrets: server.secrets.clone(),
                settings: section.map(|section| &section.settings),
                tools: Some(&server.tools),
                oauth: server.oauth.as_ref(),
                timeouts: server.timeouts,
                is_imported: declared.is_imported,
            })
        });
        of_sections.chain(of_files).filter_map(|plan| self.server(&plan)).collect()
    }

    /// A server must be declared by exactly one section or file; a section that declares none must
    /// name a server of a file. Names that differ only by case are an error: rules are written for exact names, and a new
    /// name would escape them.
    fn report_invalid_sections(&self) {
        let mut names: HashMap<String, &Arc<str>> = HashMap::new();
        for McpSection { name, transport, .. } in self.sections {
            let first = *names.entry(name.value.to_ascii_lowercase()).or_insert(&name.value);
            if *first != name.value {
                let message = format!(
                    "the name of `[mcp.{}]` differs from `[mcp.{first}]` only by case",
                    name.value
                );
                self.refuse(&name.at, message, "rename one of them");
                continue;
            }
            let of_file = self.files.get(&name.value);
            match (transport, of_file) {
                (TransportSection::OfFile, None) => {
                    let message = format!("`[mcp.{}]` has no `command` and no `url`", name.value);
                    let others: Vec<_> = self.files.names().collect();
                    let near = suggest::nearest(&name.value, others.iter().map(|name| &**name));
                    // A file that could not be read may have it.
                    if near.is_none() && self.files.is_incomplete {
                        continue;
                    }
                    let help = match near {
                        Some(near) => format!("did you mean `[mcp.{near}]`?"),
                        None => {
                            "write `command` for a program, or `url`; a section without them must \
                             name a server of a file of `mcp_files`"
                                .to_owned()
                        }
                    };
                    self.refuse(&name.at, message, &help);
                }
                (
                    TransportSection::Program(_)
                    | TransportSection::Endpoint(_)
                    | TransportSection::Broken,
                    Some(other),
                ) => {
                    let message = format!(
                        "an MCP server `{}` exists already, at {}",
                        name.value, other.server.at
                    );
                    let help = "rename one of them; a section without `command` and `url` changes \
                        settings of the existing one";
                    self.refuse(&name.at, message, help);
                }
                _ => {}
            }
        }
    }

    fn of_section<'a>(&self, section: &'a McpSection) -> Option<ServerPlan<'a>> {
        let mut values = Values::new(self.secrets, self.names, self.problems);
        let mut per_caller = CallerOverrides::default();
        let (transport, is_secret): (Transport, fn(&str) -> bool) = match &section.transport {
            TransportSection::Program(program) => {
                let stdio = self.program(program, &mut per_caller, &mut values)?;
                (stdio.into(), toolcrib_mcp::server::is_secret_variable)
            }
            TransportSection::Endpoint(endpoint) => {
                let http = endpoint_of(endpoint, &mut per_caller, &mut values)?;
                self.check_local(&endpoint.url, &http);
                (http.into(), toolcrib_mcp::server::is_secret_header)
            }
            TransportSection::OfFile | TransportSection::Broken => return None,
        };
        let Values { mut learned, missing, .. } = values;
        for caller in &section.callers {
            let (declared, secrets) = self.caller(section, caller, is_secret)?;
            per_caller.declared.push(declared);
            learned.extend(secrets);
        }
        if !per_caller.is_empty() && !per_caller.check(section, &transport, self.problems) {
            return None;
        }
        let transport = match missing {
            None => Ok(transport),
            Some(WrittenSecret { reason, at }) => {
                let help = format!(
                    "until this is changed, the MCP server `{}` cannot be used",
                    section.name.value
                );
                self.problems.push(Diagnostic::warning(&at, &*reason).help(help));
                Err(reason)
            }
        };
        Some(ServerPlan {
            name: &section.name.value,
            at: &section.name.at,
            transport,
            per_caller,
            secrets: learned,
            settings: Some(&section.settings),
            tools: None,
            oauth: None,
            timeouts: FileTimeouts::default(),
            is_imported: false,
        })
    }

    /// A declared caller, and the secrets of its texts.
    fn caller(
        &self,
        section: &McpSection,
        caller: &CallerSection,
        is_secret: fn(&str) -> bool,
    ) -> Option<(DeclaredCaller, Vec<String>)> {
        let mut values = Values::new(self.secrets, self.names, self.problems);
        let own = pairs(&caller.pairs, &mut values, is_secret)?;
        let Values { learned, missing, .. } = values;
        let own = match missing {
            None => Ok(own),
            Some(WrittenSecret { reason, at }) => {
                let name = &section.name.value;
                let help = format!(
                    "until this is changed, this caller cannot use the MCP server `{name}`"
                );
                self.problems.push(Diagnostic::warning(&at, &*reason).help(help));
                Err(reason)
            }
        };
        let CallerSection { at, principal, tenant, .. } = caller;
        let declared = DeclaredCaller {
            at: at.clone(),
            tenant: tenant.clone(),
            principal: principal.clone(),
            pairs: own,
        };
        Some((declared, learned))
    }

    fn program(
        &self,
        program: &ProgramSection,
        per_caller: &mut CallerOverrides,
        values: &mut Values<'_>,
    ) -> Option<Stdio> {
        let command = values.plain(&program.command);
        let args: Vec<_> = program.args.iter().map(|arg| values.plain(arg)).collect();
        let env = pairs(&program.env, values, toolcrib_mcp::server::is_secret_variable);
        let dir = match &program.cwd {
            None => Some(self.root.path().to_owned()),
            // A server may work outside the project, in the folder that it serves.
            Some(cwd) => values.plain(cwd).and_then(|path| self.working_dir(cwd, &path)),
        };
        if let Some(grant) = &self.names.grant {
            grant.check_program(&program.command.at, self.problems);
            let Text { value, at, .. } = &program.command;
            self.root.check_program(value, at, self.problems);
        }
        let args: Option<Vec<_>> = args.into_iter().collect();
        let mut stdio = Stdio::new(command?).args(args?).working_dir(dir?);
        for (name, value) in env? {
            match value.plain() {
                Some(value) => stdio = stdio.env(name, value),
                None => per_caller.pairs.push((name, value)),
            }
        }
        Some(stdio)
    }

    /// A server on this machine needs no `allow_addresses`; a plugin's server still needs a grant.
    fn check_local(&self, url: &Text, http: &Http) {
        let Some(grant) = &self.names.grant else { return };
        let addresses = http.local_addresses();
        if !addresses.iter().all(|address| grant.has_address(*address)) {
            let ips: Vec<_> =
                addresses.iter().map(|address| format!("\"{}\"", address.ip())).collect();
            let write = format!("allow_addresses = [{}]", ips.join(", "));
            grant.refuse(&url.at, "connects to this machine", &write, self.problems);
        }
    }

    /// The working folder of a program; that of a plugin's server must be in the plugin.
    fn working_dir(&self, cwd: &Text, path: &str) -> Option<PathBuf> {
        if self.names.grant.is_none() {
            return Some(self.root.path().join(path));
        }
        let refuse = |error| {
            let help = self.root.near(&error, path);
            let message = format!("`{}` {error}", path.escape_debug());
            self.problems.push(Diagnostic::error(&cwd.at, message).help(help));
        };
        self.root.folder(path).map_err(refuse).ok()
    }

    /// Whether its hints about effects are trusted: by its section, otherwise for an imported server
    /// by the command line.
    fn trusts(&self, plan: &ServerPlan<'_>, settings: &McpSettings) -> bool {
        let is_named = || self.trusted.iter().any(|name| **name == **plan.name);
        settings.trusted.unwrap_or_else(|| plan.is_imported && is_named())
    }

    fn server(&self, plan: &ServerPlan<'_>) -> Option<McpServer> {
        // Problems of a name were recorded when it was read.
        let name = ServerName::new(Arc::clone(plan.name)).ok()?;
        for secret in &plan.secrets {
            // A short one is refused: too many texts contain it by chance.
            let _ = self.redactor.learn(secret);
        }
        let nothing = McpSettings::default();
        let settings = plan.settings.unwrap_or(&nothing);
        let log = server_log::file_name(name.as_str(), plan.is_imported.then_some(&*plan.at.file));
        let client = match &plan.transport {
            Ok(transport) => self.client((&name, &log), plan, transport.clone(), settings),
            Err(reason) => Err(ServerProblem::Told(Arc::clone(reason))),
        };
        let client = match client {
            Ok(client) => Ok(client),
            Err(ServerProblem::Told(reason)) => Err(reason),
            Err(ServerProblem::Error(problem)) if plan.is_imported => {
                let reason = problem.message.as_str().into();
                self.problems.push(softened(&problem, &name.to_string()));
                Err(reason)
            }
            Err(ServerProblem::Error(problem)) => {
                self.problems.push(*problem);
                return None;
            }
        };
        let sandboxes = &self.names.sandboxes;
        let of_program = |transport: &Transport| matches!(transport, Transport::Stdio(_));
        Some(McpServer {
            sandbox: plan
                .transport
                .as_ref()
                .is_ok_and(of_program)
                .then(|| sandboxes.tier(&settings.sandbox, plan.is_of_file())),
            name,
            plugin: self.names.grant.as_ref().map(|grant| Arc::clone(&grant.plugin)),
            origin: plan.at.to_string().into(),
            on_failure: match settings.on_failure {
                // A change must not be passed over as an unavailable server.
                _ if self.lock.is_locked() => OnFailure::Fail,
                declared => declared.unwrap_or(REMOTE_ON_FAILURE),
            },
            alternatives: values(&settings.alternatives),
            trusted: self.trusts(plan, settings),
            imported: plan.is_imported,
            unfenced: settings.unfenced,
            prefix: settings.prefix.clone(),
            log,
            client,
        })
    }

    fn client(
        &self,
        (name, log): (&ServerName, &str),
        plan: &ServerPlan<'_>,
        transport: Transport,
        settings: &McpSettings,
    ) -> Result<McpClient, ServerProblem> {
        let transport = match transport {
            Transport::Stdio(stdio) => {
                let mut stdio = self.limited(name, plan, stdio, settings)?;
                if let Some(state) = self.logs {
                    let log = ServerLog::new(state, log, self.redactor.clone());
                    stdio = stdio.on_stderr(move |line| log.line(line));
                }
                stdio.into()
            }
            Transport::Http(http) => {
                self.authorized(self.allowed(http, settings), settings, plan.oauth)?.into()
            }
            other => other,
        };
        let mut client =
            with_settings(mcp_client(name.as_str(), transport), settings, plan.timeouts);
        let is_trusted = self.trusts(plan, settings);
        if is_trusted {
            client = client.trusted();
        }
        if let Some(include) = included(settings, plan.tools) {
            client = client.include(include);
        }
        client = client.redactor(self.redactor.clone());
        client = client.exclude(plan.tools.iter().flat_map(|tools| &tools.except));
        let mut lint_allow = settings.lint_allow.clone();
        if plan.is_imported {
            let of_server = self.lint_allow.iter().filter(|(server, _)| **server == **plan.name);
            lint_allow.extend(
                of_server
                    .map(|(_, rule)| Located { value: rule.as_str().into(), at: plan.at.clone() }),
            );
        }
        let check = definition_check(&lint_allow, self.problems);
        // A trusted server's definitions are not linted.
        let mut check = check.filter(|_| !is_trusted);
        if settings.pin.unwrap_or(true) {
            check = Some(check.unwrap_or_default().with_pins(Arc::new(self.lock.clone())));
        }
        if let Some(check) = check {
            client = client.definition_check(check);
        }
        if !plan.per_caller.is_empty() {
            let per_caller = plan.per_caller.clone();
            client =
                client.per_caller(move |tenant, principal| per_caller.access(tenant, principal));
        }
        let built = client.build();
        built.map_err(|error| ServerProblem::error(Diagnostic::error(plan.at, error.to_string())))
    }

    fn limited(
        &self,
        name: &ServerName,
        plan: &ServerPlan<'_>,
        mut stdio: Stdio,
        settings: &McpSettings,
    ) -> Result<Stdio, ServerProblem> {
        if let Some(first) = settings.allow_addresses.first() {
            let message = format!(
                "`allow_addresses` does not apply to `{name}`, which is a \
                program"
            );
            self.refuse(&first.at, message, "remove it");
        }
        if let Some(auth) = &settings.auth {
            let message = format!("`auth` does not apply to `{name}`, which is a program");
            self.refuse(&auth.at, message, "pass secrets to a program in its `env`");
        }
        stdio = stdio.limits(settings.limits.or(Stdio::default_limits()));
        let default = self.names.sandboxes.allows_stray_children()
            || (plan.is_imported && self.allow_stray_children);
        if settings.allow_stray_children.as_ref().map_or(default, |allow| allow.value) {
            stdio = stdio.allow_stray_children();
        } else if self.names.sandboxes.tier(&settings.sandbox, plan.is_of_file())
            > SandboxTier::None
            && let Err(missing) = process::support()
        {
            let reason = format!("its child processes could outlive it on this machine: {missing}");
            let sandboxes = &self.names.sandboxes;
            sandboxes.refuse_uncontained(name.as_str(), plan.at, missing, plan.is_imported);
            return Err(ServerProblem::Told(reason.into()));
        }
        let sandboxed = SandboxedProgram {
            section: &settings.sandbox,
            base: self.root.path(),
            grant: self.names.grant.as_deref(),
            is_imported: plan.is_of_file(),
            at: plan.at,
        };
        stdio = stdio.sandbox(self.names.sandboxes.resolve(&sandboxed, self.problems));
        report_unlimited_processes(&plan.at.file, self.problems);
        if let Err(missing) = stdio.find_program() {
            let help = format!("until this is changed, the MCP server `{name}` cannot be used");
            self.problems.push(Diagnostic::warning(plan.at, missing.to_string()).help(help));
        }
        Ok(stdio)
    }

    fn allowed(&self, http: Http, settings: &McpSettings) -> Http {
        let stray = settings.allow_stray_children.as_ref();
        let of_programs = settings
            .limits
            .keys()
            .chain(stray.map(|value| ("allow_stray_children", &value.at)))
            .chain(settings.sandbox.keys());
        for (key, at) in of_programs {
            self.refuse(at, format!("`{key}` applies only to a program"), "remove it");
        }
        let addresses = allowed_addresses(
            &settings.allow_addresses,
            self.names.grant.as_deref(),
            self.problems,
        );
        if addresses.is_empty() {
            http
        } else {
            http.client(HttpClient::builder().allow_addresses(addresses))
        }
    }

    /// With the user's tokens, by `auth` or without settings.
    fn authorized(
        &self,
        http: Http,
        settings: &McpSettings,
        of_file: Option<&FileOAuth>,
    ) -> Result<Http, ServerProblem> {
        let redactor = self.redactor.clone();
        let mut oauth = self.tokens.oauth().on_secret(move |secret| {
            // A short one is refused: too many texts contain it by chance.
            let _ = redactor.learn(secret);
        });
        oauth = oauth.command_flags(self.flags);
        let Some(auth) = &settings.auth else {
            if let Some(client) = of_file {
                oauth = oauth.client_id(&client.client_id);
                oauth = oauth.redirect_port(client.redirect_port.unwrap_or_default());
            }
            return Ok(http.oauth(oauth));
        };
        let mut values = Values::new(self.secrets, self.names, self.problems);
        if let Some(id) = auth.client_id.as_ref().and_then(|id| values.plain(id)) {
            oauth = oauth.client_id(id);
        }
        if let Some(issuer) = auth.issuer.as_ref().and_then(|issuer| values.plain(issuer)) {
            oauth = oauth.issuer(issuer);
        }
        let secret = auth.client_secret.as_ref().and_then(|text| values.with_secrets(text));
        if let Some(WrittenSecret { reason, at }) = values.missing {
            let help = "until this is changed, the server cannot be used";
            self.problems.push(Diagnostic::warning(&at, &*reason).help(help));
            return Err(ServerProblem::Told(reason));
        }
        if let Some(secret) = secret {
            oauth = oauth.client_secret(Secret::new(secret));
        }
        if auth.client_credentials {
            oauth = oauth.client_credentials();
        }
        oauth = oauth.scopes(auth.scopes.iter().map(|scope| scope.value.to_string()));
        if let Some(port) = auth.redirect_port {
            oauth = oauth.redirect_port(port);
        }
        Ok(http.oauth(oauth))
    }

    fn refuse(&self, at: &Spot, message: String, help: &str) {
        self.problems.push(Diagnostic::error(at, message).help(help));
    }
}

fn endpoint_of(
    endpoint: &EndpointSection,
    per_caller: &mut CallerOverrides,
    values: &mut Values<'_>,
) -> Option<Http> {
    let url = values.without_secrets(&endpoint.url);
    let headers = pairs(&endpoint.headers, values, toolcrib_mcp::server::is_secret_header);
    let url = url?;
    let mut http = Http::new(url.written());
    per_caller.url = url.plain().is_none().then_some(url);
    for (name, value) in headers? {
        match value.plain() {
            Some(value) => http = http.header(name, value),
            None => per_caller.pairs.push((name, value)),
        }
    }
    Some(http)
}

/// Names with their values; those with names of secrets become secrets.
fn pairs(
    pairs: &[Pair],
    values: &mut Values<'_>,
    is_secret: impl Fn(&str) -> bool,
) -> Option<Vec<(String, Template)>> {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|pair| {
            let value = values.template(&pair.value)?;
            // A name of a caller is not a secret.
            if let Some(plain) = value.plain().filter(|_| is_secret(&pair.name.value)) {
                values.learned.extend(toolcrib_mcp::server::secrets_in(&plain));
            }
            Some((pair.name.value.to_string(), value))
        })
        .collect();
    pairs.into_iter().collect()
}

/// The tools of a server that may be offered: a section narrows the restrictions of the file.
fn included(settings: &McpSettings, tools: Option<&FileTools>) -> Option<Vec<Arc<str>>> {
    let Some(only) = tools.and_then(|tools| tools.only.as_ref()) else {
        return settings.include.clone();
    };
    let globs = settings.include.as_ref().map(|globs| globs.iter().cloned().map(Glob::new));
    let globs: Option<Vec<_>> = globs.map(Iterator::collect);
    let is_included =
        |name: &str| globs.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(name)));
    Some(only.iter().filter(|name| is_included(name)).cloned().collect())
}

fn with_settings(
    mut client: McpClientBuilder,
    settings: &McpSettings,
    of_file: FileTimeouts,
) -> McpClientBuilder {
    if let Some(timeout) = settings.timeout.or(of_file.call) {
        client = client.call_timeout(timeout);
    }
    if let Some(timeout) = settings.start_timeout.or(of_file.start) {
        client = client.start_timeout(timeout);
    }
    if let Some(timeout) = settings.list_timeout {
        client = client.list_timeout(timeout);
    }
    if let Some(chars) = settings.max_result_chars {
        client = client.max_result_chars(chars);
    }
    if let Some(handshake) = settings.handshake {
        client = client.handshake(handshake);
    }
    if let Some(scope) = settings.session {
        client = client.session(scope);
    }
    if let Some(most) = settings.max_sessions {
        client = client.max_sessions(most);
    }
    if settings.skills {
        client = client.skills();
    }
    client.exclude(&settings.exclude).order(settings.order)
}
