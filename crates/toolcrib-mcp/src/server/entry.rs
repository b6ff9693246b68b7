//! One server in a file of an MCP client.

use std::time::Duration;

use toolcrib_config::{Diagnostic, Located, Problems, suggest};

use super::{
    Http, Stdio, Transport, env_file, expand,
    file::{FileOAuth, FileTimeouts, Reader, Unit},
    is_secret_header, is_secret_variable,
    json::{Object, Value, quoted},
    narrow, secrets_in,
};

/// The keys of an entry for the transport of a server.
const KEYS: [&str; 24] = [
    "type",
    "timeout",
    "tool_timeout_sec",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "transport",
    "transportType",
    "oauth",
    "command",
    "args",
    "env",
    "envFile",
    "environment",
    "env_vars",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "source",
    "disabled",
];

/// An entry being read.
pub(super) struct Entry<'a> {
    reader: &'a Reader<'a>,
    problems: &'a Problems,
    name: &'a str,
    object: Object<'a>,
    pub(super) secrets: Vec<String>,
}

impl<'a> Entry<'a> {
    pub(super) fn new(
        reader: &'a Reader<'a>,
        problems: &'a Problems,
        name: &'a str,
        object: Object<'a>,
    ) -> Self {
        Self { reader, problems, name, object, secrets: Vec::new() }
    }
}

impl Entry<'_> {
    /// Other products have their own keys, and some keys are misspelled.
    pub(super) fn warn_of_other_keys(&self) {
        let other = |(key, _): (Located<_>, _)| {
            (!KEYS.contains(&key.value) && !narrow::is_known(key.value)).then_some(key)
        };
        let others: Vec<Located<&str>> = self.object.entries().filter_map(other).collect();
        for key in &others {
            let Some(value) = self.object.value(key.value) else { continue };
            if let Some(inner) = narrow::inside(key.value, &value) {
                let message = format!(
                    "{} in {} may keep tools from being offered, and is not supported here",
                    quoted(inner),
                    quoted(key.value)
                );
                value
                    .refuse(self.about(&message), "write `includeTools` or `excludeTools` instead");
            }
        }
        let Some(first) = others.first() else { return };
        let names = suggest::quoted(others.iter().map(|key| key.value));
        let message = format!("not used here, in server {}: {names}", quoted(self.name));
        let meant = others.iter().find_map(|key| suggest::nearest(key.value, KEYS));
        let help = meant.map(|meant| format!("did you mean `{meant}`?"));
        self.problems.push(Diagnostic::warning(&first.at, message).help(help));
    }

    /// The transport of the server; problems are recorded.
    pub(super) fn transport(&mut self, whole: &Value<'_>) -> Option<Transport> {
        let url = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| self.object.value(key));
        let command = self.object.value("command");
        let by_http = match self.kind() {
            Some(kind) => Some(self.is_http(&kind)?),
            None => None,
        };
        match (command, url, by_http) {
            (Some(command), None, None | Some(false)) | (Some(command), Some(_), Some(false)) => {
                self.stdio(&command).map(Transport::Stdio)
            }
            (None, Some(url), None | Some(true)) | (Some(_), Some(url), Some(true)) => {
                self.http(&url).map(Transport::Http)
            }
            (Some(_), Some(url), None) => {
                let message = self.about("has both `command` and `url`");
                url.refuse(message, "keep one of them, or choose one with \"type\"");
                None
            }
            (None, _, Some(false)) => {
                whole.refuse(self.about("has no `command`"), r#"write "command": "…""#);
                None
            }
            (_, None, Some(true)) => {
                whole.refuse(self.about("has no `url`"), r#"write "url": "https://…""#);
                None
            }
            (None, None, None) => {
                let help = r#"write "command": "…" for a program, or "url": "https://…""#;
                whole.refuse(self.about("has neither `command` nor `url`"), help);
                None
            }
        }
    }

    /// The word for its transport.
    fn kind(&self) -> Option<Value<'_>> {
        let kind = ["type", "transport", "transportType"];
        let kind = kind.iter().find_map(|key| self.object.value(key))?;
        match kind.object_silently() {
            Some(object) => object.value("type"),
            None => Some(kind),
        }
    }

    /// The client in `oauth`, as Claude Code declares it.
    pub(super) fn oauth(&mut self) -> Option<FileOAuth> {
        let oauth = self.object.value("oauth")?.object_silently()?;
        let id = ["clientId", "client_id"].iter().find_map(|key| oauth.value(key))?;
        let port = ["callbackPort", "redirectPort"].iter().find_map(|key| oauth.value(key));
        let redirect_port = match port {
            None => None,
            Some(port) => match port.scalar()?.parse() {
                Ok(port) => Some(port),
                Err(_) => {
                    port.refuse(self.about("has an invalid port in `oauth`"), "use 0 to 65535");
                    None
                }
            },
        };
        Some(FileOAuth { client_id: self.expanded(&id)?, redirect_port })
    }

    /// Its timeouts; those of Codex name their units.
    pub(super) fn timeouts(&mut self, unit: Unit) -> FileTimeouts {
        /// Less is not a number of milliseconds that a call could need, and more not one of seconds.
        const LEAST_MS: f64 = 1_000.0;
        let mut timeouts = FileTimeouts::default();
        if let Some(value) = self.object.value("timeout") {
            let unit = match unit {
                Unit::Unknown if value.number().is_some_and(|it| it < LEAST_MS) => Unit::Seconds,
                Unit::Unknown => Unit::Milliseconds,
                known => known,
            };
            match unit {
                Unit::OfListing => {
                    let message = self.about("has a `timeout` of listing, which is not used here");
                    self.problems.push(Diagnostic::warning(&value.spot(), message));
                }
                unit => timeouts.call = self.duration(&value, unit),
            }
        }
        if let Some(value) = self.object.value("tool_timeout_sec") {
            timeouts.call = self.duration(&value, Unit::Seconds);
        }
        for (key, unit) in
            [("startup_timeout_sec", Unit::Seconds), ("startup_timeout_ms", Unit::Milliseconds)]
        {
            let value = self.object.value(key);
            timeouts.start = value.and_then(|it| self.duration(&it, unit)).or(timeouts.start);
        }
        timeouts
    }

    /// A timeout. Another value is ignored with a warning: it narrows nothing.
    fn duration(&self, value: &Value<'_>, unit: Unit) -> Option<Duration> {
        let seconds = value.number().map(|number| match unit {
            Unit::Seconds => number,
            _ => number / 1_000.0,
        });
        let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let duration = duration.filter(|duration| !duration.is_zero());
        if duration.is_none() {
            let message = self.about("has a timeout that is not a positive number; it is ignored");
            self.problems.push(Diagnostic::warning(&value.spot(), message));
        }
        duration
    }

    fn about(&self, what: &str) -> String {
        format!("server {} {what}", quoted(self.name))
    }

    /// Whether it uses HTTP. `None` if unknown or not supported, which is recorded.
    fn is_http(&self, kind: &Value<'_>) -> Option<bool> {
        let written = kind.text()?;
        let word = written.chars().filter(char::is_ascii_alphanumeric);
        let word: String = word.map(|c| c.to_ascii_lowercase()).collect();
        match &*word {
            "stdio" | "local" => Some(false),
            "http" | "remote" | "streamablehttp" | "httpstream" | "streamable" => Some(true),
            "sse" | "httpsse" => {
                let message = self.about(
                    "uses HTTP+SSE (`sse`), which MCP replaced by Streamable HTTP, and which is \
                     not supported here",
                );
                let help = "write \"type\": \"http\" and the server's URL for Streamable HTTP, \
                            which often ends in /mcp";
                kind.refuse(message, help);
                None
            }
            _ => {
                let words = ["stdio", "http", "streamable-http", "streamableHttp"];
                let help = suggest::help(written, "types", words);
                let message = format!("has an unknown `type`: {}", quoted(written));
                kind.refuse(self.about(&message), help);
                None
            }
        }
    }

    fn stdio(&mut self, command: &Value<'_>) -> Option<Stdio> {
        // opencode writes the program and its arguments as one list, older files of Zed as an
        // object.
        let settings = command.object_silently();
        let of_settings = |key: &str| settings.as_ref()?.value(key);
        let (program, first) = if command.is_list() {
            let mut words = self.texts(command)?.into_iter();
            (words.next(), words.collect())
        } else if let Some(path) = of_settings("path") {
            (self.expanded(&path), Vec::new())
        } else if let Some(words) = self.split(command) {
            let mut words = words.into_iter();
            (words.next(), words.collect())
        } else {
            (command.text().and_then(|_| self.expanded(command)), Vec::new())
        };
        let args = match self.object.value("args").or_else(|| of_settings("args")) {
            Some(args) => self.texts(&args),
            None => Some(Vec::new()),
        };
        let env = self.environment(of_settings("env").as_ref());
        let cwd = match self.object.value("cwd") {
            Some(cwd) => self.expanded(&cwd).map(|cwd| self.reader.working_dir.join(cwd)),
            None => Some(self.reader.working_dir.to_owned()),
        };
        if command.is_list() && program.is_none() {
            command.refuse(self.about("has an empty `command`"), None);
        }
        let program = program?;
        if program.trim().is_empty() {
            command.refuse(self.about("has a blank `command`"), None);
            return None;
        }
        let args = first.into_iter().chain(args?);
        let mut stdio = Stdio::new(program).args(args).working_dir(cwd?);
        for (name, value) in env? {
            stdio = stdio.env(name, value);
        }
        Some(stdio)
    }

    /// The words of a `command` that is a whole command line: no such file exists, and no shell would read
    /// more than words in it.
    fn split(&self, command: &Value<'_>) -> Option<Vec<String>> {
        let text = command.text_silently()?.trim();
        let is_word = |c: char| c.is_alphanumeric() || " \t-_./:@+,=%".contains(c);
        if !text.contains([' ', '\t'])
            || !text.chars().all(is_word)
            || self.reader.working_dir.join(text).exists()
        {
            return None;
        }
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        let shown = suggest::quoted(words.iter().map(String::as_str));
        let message = self.about(&format!("is started with these words of its `command`: {shown}"));
        self.problems.push(Diagnostic::warning(&command.spot(), message));
        Some(words)
    }

    /// The variables of its `envFile`, those of `env_vars` that are set, and those of `env`; a later
    /// one replaces an earlier one.
    fn environment(&mut self, of_command: Option<&Value<'_>>) -> Option<Vec<(String, String)>> {
        let mut all: Vec<(String, String)> = Vec::new();
        let mut is_valid = true;
        if let Some(file) = self.object.value("envFile") {
            match self.env_file(&file) {
                Some(found) => all.extend(found),
                None => is_valid = false,
            }
        }
        let inherited = self.object.value("env_vars").and_then(|names| names.items());
        for name in inherited.unwrap_or_default() {
            // Codex: a name, or a table with the name.
            let name = match name.object_silently() {
                Some(object) => object.value("name").and_then(|name| name.text()),
                None => name.text(),
            };
            let value = name.and_then(|name| Some((name, (self.reader.variables)(name)?)));
            all.extend(value.map(|(name, value)| (name.to_owned(), value)));
        }
        let inherited = all.iter().filter(|(name, _)| is_secret_variable(name));
        let secrets: Vec<_> = inherited.flat_map(|(_, value)| secrets_in(value)).collect();
        self.secrets.extend(secrets);
        let lists =
            [of_command.cloned(), self.object.value("environment"), self.object.value("env")];
        for list in lists.into_iter().flatten() {
            match self.pairs(&list, is_secret_variable) {
                Some(pairs) => {
                    all.retain(|(name, _)| !pairs.iter().any(|(known, _)| known == name));
                    all.extend(pairs);
                }
                None => is_valid = false,
            }
        }
        is_valid.then_some(all)
    }

    fn env_file(&mut self, file: &Value<'_>) -> Option<Vec<(String, String)>> {
        let path = self.expanded(file)?;
        let path = self.reader.working_dir.join(path);
        let text = match (self.reader.env_file)(&path) {
            Ok(text) => text,
            Err(problem) => {
                file.refuse(self.about(&format!("cannot be used: its `envFile` {problem}")), None);
                return None;
            }
        };
        match env_file::variables(&text) {
            Ok(found) => {
                Some(found.into_iter().map(|(a, b)| (a.to_owned(), b.to_owned())).collect())
            }
            Err(line) => {
                let problem = format!("cannot be used: line {line} of its `envFile` is invalid");
                file.refuse(self.about(&problem), "write one NAME=VALUE a line");
                None
            }
        }
    }

    fn http(&mut self, url: &Value<'_>) -> Option<Http> {
        let address = url.text().and_then(|_| self.expanded(url));
        let mut headers = Vec::new();
        let mut is_valid = true;
        for key in ["headers", "http_headers"] {
            let Some(list) = self.object.value(key) else { continue };
            match self.pairs(&list, |_| false) {
                Some(pairs) => headers.extend(pairs),
                None => is_valid = false,
            }
        }
        // Codex: values from the environment; a header whose variable is not set is not sent.
        let of_variables = self.object.value("env_http_headers").and_then(|list| list.object());
        for (header, name) in of_variables.iter().flat_map(Object::entries) {
            let value = name.text().and_then(|name| (self.reader.variables)(name));
            headers.extend(value.map(|value| (header.value.to_owned(), value)));
        }
        if let Some(name) = self.object.value("bearer_token_env_var") {
            let written = format!("${{{}}}", name.text()?);
            let token = self.filled(&name, &written);
            is_valid &= token.is_some();
            headers
                .extend(token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}"))));
        }
        if !is_valid {
            return None;
        }
        let mut http = Http::new(address?);
        for (name, value) in headers {
            if is_secret_header(&name) {
                self.secrets.extend(secrets_in(&value));
            }
            http = http.header(name, value);
        }
        Some(http)
    }

    /// A list of texts; all problems in it are recorded.
    fn texts(&mut self, list: &Value<'_>) -> Option<Vec<String>> {
        let texts: Vec<_> = list.items()?.iter().map(|item| self.expanded(item)).collect();
        texts.into_iter().collect()
    }

    /// The entries of an object of texts; `null` counts as absent. Secrets among them are collected.
    fn pairs(
        &mut self,
        list: &Value<'_>,
        is_secret: impl Fn(&str) -> bool,
    ) -> Option<Vec<(String, String)>> {
        let object = list.object()?;
        let pairs: Vec<_> = object
            .entries()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let value = self.expanded(&value)?;
                if is_secret(name.value) {
                    self.secrets.extend(secrets_in(&value));
                }
                Some((name.value.to_owned(), value))
            })
            .collect();
        pairs.into_iter().collect()
    }

    /// A text with the values of its variables.
    fn expanded(&mut self, value: &Value<'_>) -> Option<String> {
        let text = value.scalar()?;
        if text.contains("{file:") && !text.contains("${file:") {
            value.refuse(
                self.about("reads a value from a file (`{file:…}`), which is not supported here"),
                "write `${VAR}` with an environment variable",
            );
            return None;
        }
        // opencode writes variables without `$`.
        match text.contains("{env:") && !text.contains('$') {
            true => self.filled(value, &text.replace("{env:", "${env:")),
            false => self.filled(value, &text),
        }
    }

    fn filled(&mut self, value: &Value<'_>, text: &str) -> Option<String> {
        match expand(text, self.reader.variables) {
            Ok(expanded) => {
                self.secrets.extend(expanded.secrets);
                Some(expanded.text)
            }
            Err(error) => {
                value.refuse_at(error.offset, self.about(&format!("cannot be used: {error}")));
                None
            }
        }
    }
}
