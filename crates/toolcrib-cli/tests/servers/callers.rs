//! Servers with separate credentials for each caller, and servers that ask the person.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command},
};

use crate::{
    support::{Outcome, Project, wait_for},
    terminal::Terminal,
};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/caller_server.py");

/// A server over HTTP, ended with the value.
struct Http(Child, u16);

impl Http {
    fn start(project: &Project) -> Self {
        let port = project.path().join("port");
        let child = Command::new("python3").arg(SERVER).arg(&port).spawn().unwrap();
        let mut server = Self(child, 0);
        wait_for(|| port.exists());
        server.1 = fs::read_to_string(port).unwrap().parse().unwrap();
        server
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const ANA: &str = "hush-ana-71c2f0";
const EVIL: &str = "../../admin\r\nX-Team: root";

fn run(project: &Project, args: &[&str]) -> Outcome {
    project.command(args).env("TOOLCRIB_TEST_ANA", ANA).output().unwrap().into()
}

#[test]
fn each_caller_has_its_own_path_and_headers_and_no_other_caller_has_any() {
    let project = Project::of(&[]);
    let server = Http::start(&project);
    let evil = EVIL.replace('\r', "\\r").replace('\n', "\\n");
    project.write(
        "toolcrib.toml",
        &format!(
            r#"
policy_default = "allow"
[mcp.docs]
url = "http://127.0.0.1:{}/of/{{tenant}}/{{principal}}/mcp"
headers = {{ X-Who = "u:{{principal}}", X-Team = "all", Authorization = "Bearer nothing-0000" }}
[[mcp.docs.caller]]
principal = "ana"
tenant = "acme"
headers = {{ authorization = "Bearer {{secret:ANA}}", X-Team = "of {{tenant}}" }}
[[mcp.docs.caller]]
principal = "ben"
tenant = "acme"
headers = {{ Authorization = "Bearer {{secret:BEN}}" }}
[[mcp.docs.caller]]
principal = "{evil}"
tenant = "acme"
[secrets]
ANA = {{ env = "TOOLCRIB_TEST_ANA" }}
BEN = {{ env = "TOOLCRIB_TEST_NOT_SET" }}
"#,
            server.1
        ),
    );
    let call = |principal: &str, tenant: &str| {
        run(&project, &["mcp", "call", "docs", "who", "--as", principal, "--tenant", tenant])
    };
    let ana = call("ana", "acme");
    let expected = "path=/of/acme/ana/mcp who=u:ana key=of acme token=..c2f0";
    assert!(ana.stdout.contains(expected), "{ana:?}");
    // A name is not more than a name.
    let evil = call(EVIL, "acme");
    let name = "..%2F..%2Fadmin%0D%0AX-Team%3A%20root";
    let expected = format!("path=/of/acme/{name}/mcp who=u:{name} key=all token=..0000");
    assert!(evil.stdout.contains(&expected), "{evil:?}");

    // Another tenant's ana is another person.
    for (principal, tenant, reason) in [
        ("ana", "umbra", r#"no `caller` of it is principal "ana" and tenant "umbra""#),
        ("carl", "acme", r#"no `caller` of it is principal "carl" and tenant "acme""#),
        ("ben", "acme", "the environment variable `TOOLCRIB_TEST_NOT_SET` is not set"),
    ] {
        let whom = ["--as", principal, "--tenant", tenant];
        let tested = run(&project, &[&["mcp", "test", "docs"][..], &whom].concat());
        assert_eq!(tested.code, Some(1), "{tested:?}");
        let text = format!("{}{}", tested.stdout, tested.stderr);
        assert!(text.contains(reason) && !text.contains(ANA), "{text}");
        let called = call(principal, tenant);
        assert_eq!(called.code, Some(1), "{called:?}");
        let why = run(&project, &[&["menu", "--why"][..], &whom].concat());
        let text = format!("{}{}", why.stdout, why.stderr);
        assert!(text.contains(reason) && !text.contains("mcp__docs__who"), "{text}");
    }
}

#[test]
fn a_program_has_the_variables_of_its_caller() {
    let project = Project::of(&[(
        "toolcrib.toml",
        &format!(
            "policy_default = 'allow'\n[mcp.who]\ncommand = 'python3'\nargs = ['{SERVER}']\n\
             env = {{ WHO = '{{principal}} of {{tenant}}' }}\n"
        ),
    )]);
    let call = |whom: &[&str]| run(&project, &[&["mcp", "call", "who", "who"][..], whom].concat());
    let eve = call(&["--as", "eve@a.example", "--tenant", "x;y"]);
    assert!(eve.stdout.contains("who=eve@a.example of x%3By"), "{eve:?}");
    let unknown = call(&["--as", "eve"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    let text = format!("{}{}", unknown.stdout, unknown.stderr);
    assert!(text.contains("it needs a tenant, and the caller has none"), "{text}");
}

const SCRIPT: &str = r#"
[[rule]]
called = "mcp__desk__ask"
text = "Done: {{ results.mcp__desk__ask }}"
[[rule]]
user = "form"
calls = [{ tool = "mcp__desk__ask", args = { form = '{"type":"object","required":["branch","count"],"properties":{"branch":{"type":"string","title":"Branch","default":"main"},"count":{"type":"integer","minimum":2},"color":{"type":"string","enum":["red","blue"]},"note":{"type":"string"}}}' } }]
[[rule]]
user = "secret"
calls = [{ tool = "mcp__desk__ask", args = { form = '{"type":"object","properties":{"api_key":{"type":"string"}}}' } }]
[[rule]]
user = "page"
calls = [{ tool = "mcp__desk__ask", args = { url = "https://bücher.example/sign-in?x=1" } }]
[[rule]]
user = "plain"
calls = [{ tool = "mcp__desk__ask", args = { url = "http://far.example/" } }]
"#;

fn desk() -> Project {
    Project::of(&[
        (
            "toolcrib.toml",
            &format!(
                "policy_default = 'allow'\n[agent]\nmodel = 'script:script.toml'\n[mcp.desk]\n\
                 command = 'python3'\nargs = ['{SERVER}']\n"
            ),
        ),
        ("script.toml", SCRIPT),
    ])
}

fn ask(project: &Project, message: &str) -> Terminal {
    Terminal::start(&project.command(&["run", "--no-session", message]), 300)
}

#[test]
fn the_person_fills_in_a_form_of_a_server() {
    let project = desk();
    let mut terminal = ask(&project, "form");
    terminal.wait_for("Answer? What you enter goes to this server. [y/N]");
    let shown = terminal.shown();
    assert!(shown.contains("MCP server desk asks you"), "{shown}");
    // Its text is marked as its text, and does not control the terminal.
    assert!(shown.contains("│ Open? [y/N] y") && !shown.contains("caller"), "{shown}");
    assert!(shown.contains("Branch (text)") && shown.contains("note (text, optional)"), "{shown}");
    terminal.send("y\n");
    terminal.wait_for("Branch [main]: ");
    terminal.send("\n");
    terminal.wait_for("  count: ");
    terminal.send("many\n");
    terminal.wait_for("this must be a whole number");
    terminal.send("1\n");
    terminal.wait_for("color (number): ");
    terminal.send("2\n");
    terminal.wait_for("  note: ");
    terminal.send("\n");
    // The schema has a minimum, so the form begins again.
    terminal.wait_until(|screen| screen.matches("Branch [main]: ").count() == 2);
    terminal.send("dev\n");
    terminal.wait_until(|screen| screen.matches("  count: ").count() == 3);
    terminal.send("2\n");
    terminal.wait_until(|screen| screen.matches("color (number): ").count() == 2);
    terminal.send("blue\n");
    terminal.wait_until(|screen| screen.matches("  note: ").count() == 2);
    terminal.send("\n");
    let (code, screen, _) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    let flat = screen.split_whitespace().collect::<String>();
    assert!(flat.contains(r#""action":"accept""#), "{screen}");
    for part in [r#""branch":"dev""#, r#""count":2"#, r#""color":"blue""#] {
        assert!(flat.contains(part), "{screen}");
    }
    assert!(!flat.contains(r#""note":"#), "{screen}");
}

#[test]
fn a_question_is_declined_without_a_yes_and_refused_without_a_person() {
    let project = desk();
    let mut terminal = ask(&project, "form");
    terminal.wait_for("[y/N]");
    terminal.wait_for("Answer?");
    terminal.send("\n");
    let (_, screen, _) = terminal.end();
    assert!(screen.contains(r#""action": "decline""#), "{screen}");

    // A person is not asked for secrets, or to visit unencrypted pages.
    for (message, reason) in [
        ("secret", "the field `api_key` may be a secret"),
        ("plain", "only https URLs, and those of this machine"),
    ] {
        let (code, screen, _) = ask(&project, message).end();
        assert_eq!(code, Some(0), "{screen}");
        assert!(screen.contains(reason) && !screen.contains("asks you"), "{screen}");
    }

    let piped = project.toolcrib(&["run", "--no-session", "form"]);
    assert!(piped.stdout.contains("can=[]"), "{piped:?}");
    assert!(!piped.stdout.contains("accept"), "{piped:?}");
}

#[test]
fn a_page_is_shown_in_ascii_and_opened_after_a_yes() {
    let project = desk();
    let opened = project.path().join("opened");
    let browser = project.path().join("bin/xdg-open");
    fs::create_dir_all(browser.parent().unwrap()).unwrap();
    let script = format!("#!/bin/sh\nprintf '%s' \"$1\" > '{}'\n", opened.display());
    fs::write(&browser, script).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let path =
        format!("{}:{}", browser.parent().unwrap().display(), std::env::var("PATH").unwrap());

    let mut command = project.command(&["chat", "--no-session"]);
    command.env("PATH", &path);
    let mut terminal = Terminal::start(&command, 200);
    terminal.wait_for("> ");
    for (answer, action) in [("n\n", "decline"), ("y\n", "accept")] {
        terminal.send("page\r");
        let asked = usize::from(action == "accept") + 1;
        terminal.wait_until(|screen| screen.matches("in your browser? [y/N]").count() == asked);
        let shown = terminal.shown();
        assert!(shown.contains("page  https://xn--bcher-kva.example/sign-in?x=1"), "{shown}");
        assert!(shown.contains("host  xn--bcher-kva.example"), "{shown}");
        assert!(!opened.exists(), "{shown}");
        terminal.send(answer);
        terminal.wait_for(&format!(r#"{{"action": "{action}"}}"#));
        terminal.wait_until(|screen| screen.lines().last().is_some_and(|line| line.trim() == ">"));
    }
    wait_for(|| fs::read_to_string(&opened).is_ok_and(|url| !url.is_empty()));
    let url = fs::read_to_string(&opened).unwrap();
    assert_eq!(url, "https://xn--bcher-kva.example/sign-in?x=1");
    terminal.send("/quit\r");
    assert_eq!(terminal.end().0, Some(0));
}
