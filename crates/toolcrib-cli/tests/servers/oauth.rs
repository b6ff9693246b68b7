//! Logins to MCP servers: the commands, the stored tokens, and what is shown of them.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use toolcrib_testbed::{IdentityProvider, ProtectedServer, browse};

use crate::support::{Outcome, Project};

struct Setting {
    provider: IdentityProvider,
    server: ProtectedServer,
    project: Project,
}

impl Setting {
    async fn start() -> Self {
        let provider = IdentityProvider::start().await.unwrap();
        let server = ProtectedServer::start(&provider).await.unwrap();
        let project = Project::of(&[(
            "toolcrib.toml",
            &format!("[mcp.guarded]\nurl = \"{}\"\n", server.url()),
        )]);
        Self { provider, server, project }
    }

    fn config(&self) -> PathBuf {
        self.project.path().join("config")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        command.env("XDG_CONFIG_HOME", self.config());
        command
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).output().unwrap().into()
    }

    fn json(&self, args: &[&str]) -> Value {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        let outcome = self.run(&args);
        serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", outcome.stdout, outcome.stderr))
    }

    /// Logs in, with a browser that consents at once.
    async fn login(&self, more: &[&str]) -> Outcome {
        self.login_to("guarded", more).await
    }

    async fn login_to(&self, server: &str, more: &[&str]) -> Outcome {
        let args = ["mcp", "login", server, "--no-browser"];
        let args: Vec<_> = args.iter().chain(more).copied().collect();
        logged_in(self.command(&args)).await
    }

    fn token_files(&self) -> Vec<PathBuf> {
        let folder = self.config().join("toolcrib/tokens");
        let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
        files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect()
    }
}

/// Runs `mcp login`, with a browser that consents at once.
pub(crate) async fn logged_in(mut command: Command) -> Outcome {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (told, mut address) = tokio::sync::mpsc::unbounded_channel();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        for line in lines.map_while(Result::ok) {
            if line.starts_with("http") {
                told.send(line.clone()).unwrap();
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    });
    if let Some(address) = address.recv().await {
        browse(&address).await.unwrap();
    }
    let waited = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await;
    let mut outcome = Outcome::from(waited.unwrap());
    outcome.stderr = reading.join().unwrap();
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_used_and_its_tokens_are_shown_nowhere() {
    let setting = Setting::start().await;
    let refused = setting.run(&["mcp", "test", "guarded"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stdout.contains("run `toolcrib mcp login guarded --project /"));

    let login = setting.login(&["--scope", "extra"]).await;
    assert_eq!(login.code, Some(0), "{}{}", login.stdout, login.stderr);
    let issuer = setting.provider.issuer();
    assert_eq!(
        login.stdout.replace(issuer, "ISSUER").replace("1 h 0 min", "59 min"),
        "✓ logged in to guarded\n  by ISSUER\n  scopes: mcp:read extra\n  valid: 59 min, renewed \
         without another login\n"
    );

    let files = setting.token_files();
    assert_eq!(files.len(), 1);
    for path in files.iter().chain([&setting.config().join("toolcrib/tokens")]) {
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{path:?} {mode:o}");
    }
    let stored: Value = serde_json::from_str(&fs::read_to_string(&files[0]).unwrap()).unwrap();
    let token = stored["tokens"]["access_token"].as_str().unwrap();
    let refresh = stored["tokens"]["refresh_token"].as_str().unwrap();

    // The server returns the token that it got.
    let call = setting.run(&["mcp", "call", "guarded", "read"]);
    assert_eq!(call.code, Some(0), "{}", call.stderr);
    assert!(call.stdout.contains("got "), "{}", call.stdout);
    let status = setting.json(&["mcp", "status"]);
    assert_eq!(status["logins"][0]["logged_in"], true);
    assert_eq!(status["logins"][0]["scopes"][1], "extra");
    for text in [&login.stdout, &login.stderr, &call.stdout, &call.stderr, &status.to_string()] {
        assert!(!text.contains(token) && !text.contains(refresh), "{text}");
    }

    let out = setting.run(&["mcp", "logout", "guarded"]);
    assert_eq!(out.stdout, "✓ logged out of guarded\n");
    assert!(setting.token_files().is_empty());
    assert_eq!(setting.provider.requests("/revoke").len(), 1);
    let status = setting.run(&["mcp", "status"]);
    assert_eq!(status.stdout, "– guarded no login\n");
}

/// It lacked the options, and there was no such server.
#[tokio::test(flavor = "multi_thread")]
async fn the_named_command_finds_an_imported_server() {
    let setting = Setting::start().await;
    let file = setting.project.path().join("servers.json");
    let servers = json!({ "mcpServers": { "imported": { "url": setting.server.url() } } });
    fs::write(&file, servers.to_string()).unwrap();
    let import = ["--import", file.to_str().unwrap()];
    let refused = setting.run(&[&["mcp", "test", "imported"], &import[..]].concat());
    let project = setting.project.path().display();
    let named =
        format!("run `toolcrib mcp login imported --project {project} {}`", import.join(" "));
    assert!(refused.stdout.contains(&named), "{}{}", refused.stdout, refused.stderr);
    let login = setting.login_to("imported", &import).await;
    assert_eq!(login.code, Some(0), "{}{}", login.stdout, login.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_not_quoted_and_a_file_that_others_read_is_not_used() {
    let setting = Setting::start().await;
    assert_eq!(setting.login(&["--as", "ana"]).await.code, Some(0));
    let path = setting.token_files().pop().unwrap();
    let stored: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let token = stored["tokens"]["access_token"].as_str().unwrap();
    // The server's answer quotes the token that it refuses.
    setting.provider.revoke_all(true);
    let call = setting.run(&["mcp", "call", "guarded", "read", "--as", "ana"]);
    assert_ne!(call.code, Some(0));
    assert!(setting.server.authorizations().iter().flatten().any(|sent| sent.ends_with(token)));
    assert!(!call.stdout.contains(token) && !call.stderr.contains(token), "{}", call.stderr);
    let text = format!("{}{}", call.stdout, call.stderr);
    assert!(text.contains("toolcrib mcp login guarded --as ana"), "{text}");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let status = setting.run(&["mcp", "status", "guarded", "--as", "ana"]);
    assert_eq!(status.code, Some(1));
    assert!(status.stderr.contains("other users can read or change it"), "{}", status.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_without_a_login_are_named_as_such() {
    let project = Project::of(&[(
        "toolcrib.toml",
        "[mcp.local]\ncommand = \"true\"\n\n[mcp.remote]\nurl = \"https://127.0.0.1:1/mcp\"\n\
         auth = { client_id = \"a\", client_secret = \"secret:S\" }\n\n\
         [secrets]\nS = { env = \"TOOLCRIB_TEST_S\" }\n",
    )]);
    let mut command = project.command(&["check"]);
    let checked = Outcome::from(command.env("TOOLCRIB_TEST_S", "a long secret").output().unwrap());
    assert!(checked.stderr.contains("a client secret needs `issuer`"), "{}", checked.stderr);
    let project = Project::of(&[("toolcrib.toml", "[mcp.local]\ncommand = \"true\"\n")]);
    let login = project.toolcrib(&["mcp", "login", "local"]);
    assert_eq!(login.code, Some(2));
    assert!(login.stderr.contains("it is a program"), "{}", login.stderr);
}
