//! Projects over OpenAPI documents, and projects that begin with one.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

use toolcrib_project::{
    Consent, InitError, InitReport, LoadOptions, Mode, Power, Project, Review, Verdict, init_from,
};

use crate::folder::Folder;

const SHOP: &str = include_str!("../../../toolcrib-tools/tests/openapi/shop.yaml");

const PROJECT: &str = r#"
policy_default = "deny"
[secrets]
KEY = { env = "PATH" }
[[tool]]
kind = "openapi"
name = "shop"
file = "api/shop.yaml"
auth = "secret:KEY"
exclude = ["HEAD"]
[[policy]]
effect = "allow"
tool = "shop_listOrders"
"#;

fn folder(project: &str) -> Folder {
    Folder::with(project).file("api/shop.yaml", SHOP)
}

/// Records what the user is asked.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<Power>>);

impl Consent for Asked {
    fn review(&self, review: &Review) -> Verdict {
        *self.0.lock().unwrap() = review.powers.clone();
        Verdict::Use
    }

    fn replace(&self, _: &[PathBuf]) -> bool {
        false
    }
}

#[test]
fn operations_are_tools_that_rules_name() {
    let folder = folder(PROJECT);
    let project = folder.load();
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    assert_eq!(project.tools().len(), 9);
    let tool = project.tools().iter().find(|tool| tool.name().as_str() == "shop_listOrders");
    let tool = tool.unwrap();
    assert_eq!(tool.toolset(), Some("shop"));
    assert!(tool.annotations().read_only && tool.untrusted());
    assert_eq!(tool.capabilities().secrets, ["KEY".into()]);
    let withheld: Vec<_> =
        project.tools().iter().filter(|tool| tool.check_available().is_err()).collect();
    assert_eq!(withheld.len(), 3, "{withheld:?}");
}

#[test]
fn a_user_is_asked_once_for_all_operations_of_a_document() {
    let folder = folder(PROJECT);
    let asked = std::sync::Arc::new(Asked::default());
    let consent = Some(std::sync::Arc::clone(&asked) as _);
    let options = LoadOptions { consent, mode: Mode::Inspect, ..LoadOptions::default() };
    Project::load(folder.path(), &options).unwrap();
    let powers = asked.0.lock().unwrap();
    let all: String = powers.iter().map(|power| format!("{power}\n")).collect();
    assert_eq!(powers.len(), 1, "{all}");
    assert!(all.contains("tools of `api/shop.yaml`") && all.contains("shop.example"), "{all}");
    assert_eq!(powers[0].reads, ["PATH"]);
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let tool = |keys: &str| format!("[[tool]]\nkind = \"openapi\"\n{keys}\n");
    for (project, said) in [
        (tool(""), "toolcrib.toml:1:1: `file` is missing in `[[tool]]`"),
        (tool("file = \"api/shop.yml\""), "did you mean `api/shop.yaml`?"),
        (tool("file = \"seed.sql\""), "seed.sql:1:1: this is not an OpenAPI document"),
        (tool("url = \"https://a.example\"\nfile = \"api/shop.yaml\""), "save the document"),
        (tool("file = \"api/shop.yaml\"\nserver = \"a.example\""), "`server` cannot be used"),
        (tool("file = \"api/shop.yaml\"\nauth = \"abcd\""), "not a reference to a secret"),
        (tool("file = \"api/shop.yaml\"\nauth = \"secret:NOPE\""), "unknown secret `NOPE`"),
        (
            tool("file = \"api/shop.yaml\"\nauth = { tokn = \"secret:KEY\" }"),
            "toolcrib.toml:4:10: `api/shop.yaml` declares no security scheme `tokn`",
        ),
        (tool("file = \"../shop.yaml\""), "leads out of the project's folder"),
        (
            tool("file = \"api/shop.yaml\"\nheaders = { \"a b\" = \"c\" }"),
            "not a valid header name",
        ),
        (tool("file = \"api/shop.yaml\"\ndescription = \"x\""), "description of its operation"),
        (tool("file = \"api/shop.yaml\"\nname = \"a b\""), "is not a tool name"),
    ] {
        let problems = folder(&project).problems().to_string();
        assert!(problems.contains(said), "{project}\n{problems}");
    }
    let warned =
        folder(&tool("file = \"api/shop.yaml\"\ninclude = [\"tag:none\", \"GET\"]")).load();
    assert!(warned.warnings().to_string().contains("matches `tag:none`"), "{}", warned.warnings());
}

#[test]
fn a_private_server_is_a_warning() {
    let project = "[[tool]]\nkind = \"openapi\"\nfile = \"api/shop.yaml\"\nserver = \"http://127.0.0.1:9\"\n\
                   include = [\"HEAD\"]\n";
    let warned = folder(project).load();
    let warnings = warned.warnings().to_string();
    assert!(warnings.contains("not on the public internet"), "{warnings}");
    let allowed = format!("{project}allow_addresses = [\"127.0.0.1\"]\n");
    assert!(folder(&allowed).load().warnings().is_empty());
}

#[test]
fn a_secret_that_an_operation_can_do_without_is_not_required() {
    let document = r#"{ "openapi": "3.2.0", "servers": [{ "url": "https://a.example" }],
        "components": { "securitySchemes": { "b": { "type": "http", "scheme": "bearer" } } },
        "paths": { "/search": {
            "get": { "operationId": "either", "security": [{ "b": [] }, {}] },
            "put": { "operationId": "strict", "security": [{ "b": [] }] },
            "query": { "operationId": "newer" },
            "additionalOperations": { "COPY": { "operationId": "copy" } } } } }"#;
    let project = |variable: &str| {
        let file = format!(
            "[[tool]]\nkind = \"openapi\"\nfile = \"a.json\"\nauth = \"secret:KEY\"\n\
             [secrets]\nKEY = {{ env = \"{variable}\" }}\n"
        );
        Folder::with(&file).file("a.json", document)
    };
    for (variable, secrets) in [("TOOLCRIB_NO_SUCH", 0), ("PATH", 1)] {
        let folder = project(variable);
        let project = folder.load();
        let named = |name: &str| project.tools().iter().find(|tool| *tool.name() == *name).unwrap();
        assert_eq!(named("either").check_available(), Ok(()));
        assert_eq!(named("either").capabilities().secrets.len(), secrets);
        assert_eq!(named("strict").check_available().is_ok(), secrets == 1);
        let warnings = project.warnings().to_string();
        assert!(warnings.contains("left out: `QUERY /search`, `COPY /search`"), "{warnings}");
    }
}

fn begin(name: &str, bytes: &[u8]) -> (tempfile::TempDir, Result<InitReport, InitError>) {
    let dir = tempfile::TempDir::new().unwrap();
    let source = dir.path().join(name);
    fs::write(&source, bytes).unwrap();
    let begun = init_from(&dir.path().join("new"), &source);
    (dir, begun)
}

fn load(dir: &Path) -> Project {
    Project::load(&dir.join("new"), &LoadOptions::default()).unwrap()
}

#[test]
fn a_project_begins_with_a_document_a_database_or_servers() {
    let (dir, begun) = begin("Shop API.v2.yaml", SHOP.as_bytes());
    assert_eq!(begun.unwrap().files.len(), 3);
    let project = load(dir.path());
    assert_eq!(project.tools().len(), 10);
    let names: Vec<_> = project.tools().iter().map(|tool| tool.name().to_string()).collect();
    assert!(names.contains(&"listOrders".to_owned()), "{names:?}");
    let warnings = project.warnings().to_string();
    assert!(warnings.contains("SHOP_API_API_KEY"), "{warnings}");

    let relative = SHOP.replace("https://shop.example/v1", "/v1").replace("[{ token: [] }]", "[]");
    let (dir, begun) = begin("a.yaml", relative.as_bytes());
    let notices = begun.unwrap().notices;
    let [server, key] = &*notices else { panic!("{notices:?}") };
    assert!(server.contains("replace `server`") && key.contains("A_API_KEY"), "{notices:?}");
    let text = fs::read_to_string(dir.path().join("new/toolcrib.toml")).unwrap();
    assert!(text.contains("server = \"https://api.example.com\""), "{text}");
    let warnings = load(dir.path()).warnings().to_string();
    assert!(warnings.contains("`server` is still the placeholder"), "{warnings}");

    let private = SHOP.replace("https://shop.example/v1", "http://10.0.0.7:8000/v1");
    let (dir, begun) = begin("a.yaml", private.as_bytes());
    let notices = begun.unwrap().notices;
    let [address, key] = &*notices else { panic!("{notices:?}") };
    assert!(address.contains("10.0.0.7") && key.contains("A_API_KEY"), "{notices:?}");
    let warnings = load(dir.path()).warnings().to_string();
    assert!(!warnings.contains("public internet"), "{warnings}");

    let database = include_bytes!("../../../../examples/own-database/shop.db");
    let (dir, begun) = begin("my \"shop\".db", database);
    assert_eq!(begun.unwrap().files.len(), 2);
    let project = load(dir.path());
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    assert_eq!(project.tools().len(), 3);

    let servers = r#"{ "mcpServers": { "git": { "url": "https://git.example/mcp" } } }"#;
    let (dir, begun) = begin(".mcp.json", servers.as_bytes());
    assert_eq!(begun.unwrap().files.len(), 3);
    assert_eq!(load(dir.path()).mcp_servers().len(), 1);
}

#[test]
fn a_project_does_not_begin_with_another_file() {
    for (name, text) in [("notes.md", "# Notes"), ("a.json", "{}"), ("empty", "")] {
        let (dir, begun) = begin(name, text.as_bytes());
        let error = begun.unwrap_err();
        assert!(matches!(error, InitError::Unusable { .. }), "{error}");
        assert!(error.to_string().contains("neither a SQLite database"), "{error}");
        assert!(!dir.path().join("new").exists());
    }
    let dir = tempfile::TempDir::new().unwrap();
    let error = init_from(&dir.path().join("new"), &dir.path().join("missing")).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
    let (dir, begun) = begin("a.yaml", SHOP.as_bytes());
    begun.unwrap();
    let again = init_from(&dir.path().join("new"), &dir.path().join("a.yaml")).unwrap_err();
    assert!(matches!(again, InitError::AlreadyThere { .. }), "{again}");
}
