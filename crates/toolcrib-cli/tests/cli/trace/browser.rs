//! The page in a real browser: hostile texts, requests, accessibility.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use toolcrib_skip::skip;

use super::{FILE, run};
use crate::support::Project;

/// The browser, or the folder of a package of npm; if it is missing, the test is skipped.
fn needed(path: Option<PathBuf>, what: &str, help: &str) -> Option<PathBuf> {
    if path.is_none() {
        skip(format_args!("{what} is missing; {help}"));
    }
    path
}

fn browser() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let help = "install it, such as by `apt-get install chromium`";
    needed(found.into_iter().find(|path| path.exists()), "Chromium", help)
}

fn axe() -> Option<PathBuf> {
    let folder = env::var_os("TOOLCRIB_PEERS").map(PathBuf::from);
    let file = folder.map(|folder| folder.join("node_modules/axe-core/axe.min.js"));
    needed(file.filter(|file| file.exists()), "axe-core", "run `cargo xtask test`")
}

/// Opens a file, and returns the document after its scripts.
fn opened(browser: &Path, profile: &Path, page: &Path, width: u32) -> String {
    let outcome = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--virtual-time-budget=20000", &format!("--window-size={width},900")])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let document = String::from_utf8(outcome.stdout).unwrap();
    assert!(document.contains("</html>"), "{}", String::from_utf8_lossy(&outcome.stderr));
    document
}

/// Text that would take over the page, or call home, if it became markup.
fn hostile(address: &str) -> String {
    let script = "document.title='OWNED';document.body.innerHTML='OWNED'";
    [
        format!("<script>{script}</script>"),
        format!("</pre></div></details></section></main><script>{script}</script>"),
        format!("<img src=http://{address}/img onerror=\"{script}\">"),
        format!("<link rel=stylesheet href=http://{address}/css>"),
        format!("<style>@import 'http://{address}/import';body{{display:none}}</style>"),
        format!("<meta http-equiv=refresh content='0;url=http://{address}/refresh'>"),
        format!("<iframe src=http://{address}/frame></iframe>"),
        format!("\" onmouseover=\"{script}\" x=\""),
        "--></title></style></svg><base href=http://example.com>".to_owned(),
        "\u{202e}\u{1b}[2J\u{0}&lt;script&gt;".to_owned(),
    ]
    .join("\n")
}

/// A page with 100 calls whose results are hostile, and the listener that they call.
fn page_of_a_hundred_calls() -> (Project, PathBuf, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let text = hostile(&listener.local_addr().unwrap().to_string());
    let mut script = String::new();
    for step in 1..=4 {
        // A run may not repeat one call this often.
        let calls: String = ["hostile.txt", "./hostile.txt"]
            .into_iter()
            .cycle()
            .take(25)
            .map(|file| format!("{{ tool = \"fetch\", args = {{ file = \"{file}\" }} }},\n"))
            .collect();
        script += &format!("[[rule]]\nstep = {step}\ncalls = [{calls}]\n");
    }
    script += "[[rule]]\ntext = '''\n<script>document.title='OWNED'</script> Done.'''\n";
    let project = Project::of(&[("toolcrib.toml", FILE), ("script.toml", &script)]);
    project.write("hostile.txt", &text.repeat(60));
    run(&project, &text.replace('\0', ""));
    let path = project.path().join("run.html");
    let outcome = project.toolcrib(&["trace", "--html", path.to_str().unwrap()]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(fs::metadata(&path).unwrap().len() < 2_000_000);
    (project, path, listener)
}

#[test]
fn hostile_results_of_a_hundred_calls_stay_text_and_cause_no_request() {
    let Some(browser) = browser() else { return };
    let (project, path, listener) = page_of_a_hundred_calls();
    let profile = project.path().join("profile");
    // Once as it is, and once without the policy: the escaping alone must suffice.
    let page = fs::read_to_string(&path).unwrap();
    let bare = project.path().join("bare.html");
    let policy = "http-equiv=\"Content-Security-Policy\"";
    assert!(page.contains(policy));
    fs::write(&bare, page.replacen(policy, "name=\"none\"", 1)).unwrap();
    for page in [&path, &bare] {
        let document = opened(&browser, &profile, page, 1280);
        assert!(document.contains("<title>Run "), "{}", &document[..500]);
        for absent in
            ["<script", "<img", "<link", "<iframe", "<base", "http-equiv=\"refresh", "<p onmouse"]
        {
            assert!(!document.contains(absent), "{absent} in {}", page.display());
        }
        assert_eq!(document.matches("<details id=\"i").count(), 100);
        assert_eq!(document.matches("<style>").count(), 1);
    }
    assert!(listener.accept().is_err(), "the page made a request");
}

#[test]
fn the_page_has_no_violation_that_axe_finds_in_either_width_and_scheme() {
    let (Some(browser), Some(axe)) = (browser(), axe()) else { return };
    let project = Project::desk();
    run(&project, "I was charged twice for order 1042, please refund one charge");
    let path = project.path().join("run.html");
    project.toolcrib(&["trace", "--html", path.to_str().unwrap()]);
    let page = fs::read_to_string(&path).unwrap();
    // The policy forbids scripts, axe's too.
    let check = "document.querySelectorAll('details').forEach(d => d.open = true);
        axe.run({resultTypes: ['violations']}).then(found => {
            document.body.textContent = JSON.stringify({
                rules: found.passes.length,
                wide: document.documentElement.scrollWidth > innerWidth,
                violations: found.violations.map(v => [v.id, v.nodes.map(n => n.html)]),
            });
        });";
    let axe = fs::read_to_string(axe).unwrap();
    let scripts = format!("<script>{axe}</script><script>{check}</script></body>");
    let page = page
        .replacen("http-equiv=\"Content-Security-Policy\"", "name=\"none\"", 1)
        .replacen("</body>", &scripts, 1);
    for (width, scheme) in [(390, "dark"), (1280, "light")] {
        let page = match scheme {
            "dark" => page.replace("(prefers-color-scheme: dark)", "(min-width: 1px)"),
            _ => page.clone(),
        };
        let checked = project.path().join(format!("{scheme}.html"));
        fs::write(&checked, page).unwrap();
        let document = opened(&browser, &project.path().join("profile"), &checked, width);
        let start = document.find("<body>").unwrap() + "<body>".len();
        let json = &document[start..document.find("</body>").unwrap()];
        let found: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{json}"));
        assert!(found["rules"].as_u64() > Some(10), "{found}");
        assert_eq!(found["violations"], Value::Array(Vec::new()), "{scheme}: {found:#}");
        assert_eq!(found["wide"], false, "{width}");
    }
}
