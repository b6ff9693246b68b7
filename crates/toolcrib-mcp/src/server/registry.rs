//! `server.json` of the MCP registry: packages that are run by their own runner, and remotes.

use super::{
    Http, Stdio, Transport,
    json::{Object, Value, quoted},
};

/// A server of the registry: the variables of its values, and the secrets among them.
pub(super) struct RegistryServer<'a> {
    pub(super) variables: &'a dyn Fn(&str) -> Option<String>,
    pub(super) secrets: Vec<String>,
}

/// The runner of a package, by its registry.
struct Runner {
    registry: &'static str,
    command: &'static str,
    /// Its arguments before the identifier.
    before: &'static [&'static str],
    /// The text between identifier and version.
    version: &'static str,
}

const RUNNERS: [Runner; 4] = [
    Runner { registry: "npm", command: "npx", before: &["-y"], version: "@" },
    Runner { registry: "pypi", command: "uvx", before: &[], version: "@" },
    Runner { registry: "oci", command: "docker", before: &["run", "-i", "--rm"], version: ":" },
    Runner { registry: "nuget", command: "dnx", before: &["--yes"], version: "@" },
];

/// The server of a file, if the file is a `server.json`: alone, or as the registry answers it.
pub(super) fn server_of<'a>(root: &Value<'a>) -> Option<Value<'a>> {
    let is_server = |value: &Value<'a>| {
        let Some(object) = value.object_silently() else { return false };
        let has = |key: &str| object.value(key).is_some();
        has("name") && (has("packages") || has("remotes")) && !has("mcpServers")
    };
    let inside = root.object_silently().and_then(|object| object.value("server"));
    inside.filter(is_server).or_else(|| is_server(root).then(|| root.clone()))
}

/// The short name of a server: `weather` of `io.github.someone/weather`.
pub(super) fn short_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl RegistryServer<'_> {
    /// The first usable way to reach the server. The reasons against the others are recorded.
    pub(super) fn transport(&mut self, server: &Value<'_>) -> Option<Transport> {
        let object = server.object()?;
        let list = |key: &str| object.value(key).and_then(|list| list.items()).unwrap_or_default();
        let (packages, remotes) = (list("packages"), list("remotes"));
        let mut passed = Vec::new();
        for package in &packages {
            match self.package(package) {
                Ok(stdio) => return Some(stdio.into()),
                Err(reason) => passed.push(reason),
            }
        }
        for remote in &remotes {
            match self.remote(remote) {
                Ok(http) => return Some(http.into()),
                Err(reason) => passed.push(reason),
            }
        }
        if passed.is_empty() {
            passed.push("it has no package and no remote".to_owned());
        }
        let message = format!("this server cannot be used: {}", passed.join("; "));
        server
            .refuse(message, "write it as an entry of `mcpServers`, with the values that it needs");
        None
    }

    fn package(&mut self, package: &Value<'_>) -> Result<Stdio, String> {
        let object = package.object().ok_or("a package is not an object")?;
        let text = |key: &str| object.value(key).and_then(|value| value.text()).unwrap_or_default();
        let (registry, identifier, version) =
            (text("registryType"), text("identifier"), text("version"));
        let named = quoted(identifier);
        if identifier.is_empty() || identifier.starts_with('-') {
            return Err("a package has no usable `identifier`".to_owned());
        }
        let runner = RUNNERS.iter().find(|runner| runner.registry == registry);
        let runner = runner.ok_or_else(|| {
            format!(
                "package {named} is of the registry {}, which is not supported",
                quoted(registry)
            )
        })?;
        let transport = object.value("transport").and_then(|transport| transport.object());
        let kind = transport.and_then(|transport| transport.value("type")?.text());
        if kind.is_some_and(|kind| kind != "stdio") {
            return Err(format!("package {named} does not talk over standard input and output"));
        }
        if let Some(hint) = object.value("runtimeHint").and_then(|hint| hint.text())
            && hint != runner.command
        {
            return Err(format!("package {named} wants the runner {}", quoted(hint)));
        }
        let about = |problem: String| format!("package {named}: {problem}");
        let mut env = Vec::new();
        for variable in object.value("environmentVariables").iter().flat_map(items) {
            let Some(variable) = variable.object() else { continue };
            let name = text_of(&variable, "name").unwrap_or_default();
            let given = (self.variables)(name).filter(|value| !value.is_empty());
            let value = self.value(&variable, name, given).map_err(about)?;
            if let Some(value) = value {
                env.push((name.to_owned(), value));
            }
        }
        let mut args: Vec<String> = runner.before.iter().map(|&arg| arg.to_owned()).collect();
        if runner.command == "docker" {
            // The container inherits the value of a variable that has a name only.
            args.extend(env.iter().flat_map(|(name, _)| ["-e".to_owned(), name.clone()]));
        }
        self.arguments(&object, "runtimeArguments", &mut args).map_err(about)?;
        let has_version = version.is_empty()
            || version == "latest"
            || identifier.contains(['@', ':']) && runner.command == "docker";
        let version =
            if has_version { String::new() } else { format!("{}{version}", runner.version) };
        args.push(format!("{identifier}{version}"));
        self.arguments(&object, "packageArguments", &mut args).map_err(about)?;
        let mut stdio = Stdio::new(runner.command).args(args);
        for (name, value) in env {
            stdio = stdio.env(name, value);
        }
        Ok(stdio)
    }

    fn remote(&mut self, remote: &Value<'_>) -> Result<Http, String> {
        let object = remote.object().ok_or("a remote is not an object")?;
        let url = text_of(&object, "url").unwrap_or_default();
        let about = |problem: String| format!("remote {}: {problem}", quoted(url));
        let kind = text_of(&object, "type").unwrap_or_default();
        if kind != "streamable-http" {
            return Err(about(format!("its type {} is not supported", quoted(kind))));
        }
        let mut http = Http::new(self.filled(&object, url).map_err(about)?);
        for header in object.value("headers").iter().flat_map(items) {
            let Some(header) = header.object() else { continue };
            let name = text_of(&header, "name").unwrap_or_default();
            if let Some(value) = self.value(&header, name, None).map_err(about)? {
                if super::is_secret_header(name) {
                    self.secrets.extend(super::secrets_in(&value));
                }
                http = http.header(name, value);
            }
        }
        Ok(http)
    }

    /// Adds arguments of a package: positional ones, and options with their values.
    fn arguments(
        &mut self,
        package: &Object<'_>,
        key: &str,
        args: &mut Vec<String>,
    ) -> Result<(), String> {
        for argument in package.value(key).iter().flat_map(items) {
            let Some(argument) = argument.object() else { continue };
            let name = text_of(&argument, "name");
            let hint = text_of(&argument, "valueHint");
            let value = self.value(&argument, name.or(hint).unwrap_or("an argument"), None)?;
            match (text_of(&argument, "type"), name, value) {
                (Some("positional"), _, value) => args.extend(value),
                (Some("named"), Some(name), Some(value)) => {
                    args.extend([name.to_owned(), value]);
                }
                // An option without a value is a flag; it is only given if the file requires it.
                (Some("named"), Some(name), None) => {
                    let takes = hint.is_some() || argument.value("format").is_some();
                    if !takes && is_true(&argument, "isRequired") {
                        args.push(name.to_owned());
                    }
                }
                (kind, ..) => {
                    let kind = quoted(kind.unwrap_or_default());
                    return Err(format!("an argument of type {kind} is not supported"));
                }
            }
        }
        Ok(())
    }

    /// The value of an input: the file's, the given one, or its default. `None` if it is optional.
    fn value(
        &mut self,
        input: &Object<'_>,
        name: &str,
        given: Option<String>,
    ) -> Result<Option<String>, String> {
        let value = match text_of(input, "value") {
            Some(value) => Some(self.filled(input, value)?),
            None => given.or_else(|| text_of(input, "default").map(str::to_owned)),
        };
        if let Some(value) = &value
            && (is_true(input, "isSecret") || super::is_secret_variable(name))
        {
            self.secrets.extend(super::secrets_in(value));
        }
        let is_flag =
            text_of(input, "type") == Some("named") && text_of(input, "valueHint").is_none();
        if value.is_none() && is_true(input, "isRequired") && !is_flag {
            let help = if name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            {
                "; set this environment variable"
            } else {
                ""
            };
            return Err(format!("it needs a value for {}{help}", quoted(name)));
        }
        Ok(value)
    }

    /// A text with the values of its `{variables}`.
    fn filled(&mut self, input: &Object<'_>, text: &str) -> Result<String, String> {
        let variables = input.value("variables").and_then(|variables| variables.object());
        let Some(variables) = variables else { return Ok(text.to_owned()) };
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let variable = after
                .split_once('}')
                .and_then(|(name, after)| Some((name, variables.value(name)?.object()?, after)));
            let Some((name, variable, after)) = variable else {
                filled.push('{');
                rest = after;
                continue;
            };
            let value = text_of(&variable, "value").or_else(|| text_of(&variable, "default"));
            let given = || (self.variables)(name).filter(|value| !value.is_empty());
            let value = value.map(str::to_owned).or_else(given).ok_or_else(|| {
                format!("it needs a value for {}; set it as an environment variable", quoted(name))
            })?;
            if is_true(&variable, "isSecret") || super::is_secret_variable(name) {
                self.secrets.extend(super::secrets_in(&value));
            }
            filled.push_str(&value);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

fn items<'a>(list: &Value<'a>) -> Vec<Value<'a>> {
    list.items().unwrap_or_default()
}

fn text_of<'a>(object: &Object<'a>, key: &str) -> Option<&'a str> {
    object.value(key)?.text()
}

fn is_true(object: &Object<'_>, key: &str) -> bool {
    object.value(key).and_then(|value| value.boolean()) == Some(true)
}
