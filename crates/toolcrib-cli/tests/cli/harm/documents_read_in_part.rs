//! OpenAPI documents of which a part was lost without a word, or refused as a whole.

use serde_json::{Value, json};

use crate::{http::Server, mcp_server, support::Project};

const SECRET: &str = "hush-documents-41c7";
const VARIABLE: &str = "TOOLCRIB_TEST_DOCUMENT_SECRET";

/// A project with a document and more keys of its table.
fn project(server: &Server, (file, document): (&str, &str), keys: &str) -> Project {
    let port = server.port;
    let toml = format!(
        "policy_default = 'allow'\n[secrets]\nKEY = {{ env = '{VARIABLE}' }}\n[[tool]]\nkind = 'openapi'\n\
         file = '{file}'\nserver = 'http://127.0.0.1:{port}'\nallow_addresses = ['127.0.0.1']\n{keys}\n"
    );
    Project::of(&[("toolcrib.toml", &toml), (file, document)])
}

fn document(paths: &Value) -> String {
    json!({ "openapi": "3.0.3", "info": { "title": "T", "version": "1" }, "paths": paths })
        .to_string()
}

/// The request of a call that succeeds.
fn requested(project: &Project, server: &Server, args: &[&str]) -> String {
    let before = server.asked().len();
    let mut command = project.command(&[&["call"], args].concat());
    let output = command.env(VARIABLE, SECRET).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let asked = server.asked();
    assert_eq!(asked.len(), before + 1, "{args:?}");
    asked[before].clone()
}

fn first_line(request: &str) -> &str {
    request.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")
}

/// The warnings of `check`, which succeeds.
fn warnings(project: &Project) -> String {
    let checked = project.toolcrib(&["check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    checked.stderr + &checked.stdout
}

#[test]
fn an_optional_body_of_get_withheld_the_operation() {
    let server = Server::start();
    let body = |required: Option<bool>, media: &str| json!({ "required": required, "content": { media: { "schema": { "type": "object" } } } });
    let query = json!([{ "name": "q", "in": "query", "schema": { "type": "string" } }]);
    let text = document(&json!({
        "/s": {
            "get": { "operationId": "s", "parameters": query, "requestBody": body(None, "application/json") },
            "head": { "operationId": "h", "requestBody": body(Some(false), "image/png") },
        },
        "/must": { "get": { "operationId": "must", "requestBody": body(Some(true), "application/json") } },
    }));
    let project = project(&server, ("o.json", &text), "");
    let sent = requested(&project, &server, &["s", "q=1"]);
    assert_eq!(first_line(&sent), "GET /s?q=1");
    assert!(!sent.to_lowercase().contains("content-length: "), "{sent}");
    assert_eq!(first_line(&requested(&project, &server, &["h"])), "HEAD /s");
    let said = warnings(&project);
    assert!(said.contains("an optional body of GET or HEAD is never sent"), "{said}");
    let why = project.toolcrib(&["menu", "--why"]).stdout;
    assert!(why.contains("a GET or HEAD requires a body"), "{why}");
}

#[test]
fn paths_with_a_fragment_were_withheld() {
    let server = Server::start();
    let post = |id: Option<&str>| json!({ "post": { "operationId": id } });
    let text = document(&json!({
        "/oauth2/token": post(None),
        "/oauth2/token#refresh": post(None),
        "/#X-Amz-Target=Jobs.List": { "post": { "operationId": "jobs", "parameters": [
            { "name": "X-Amz-Target", "in": "header", "required": true,
              "schema": { "type": "string", "enum": ["Jobs.List"] } }] } },
        "/a/{id}?x=1#{ghost}": post(Some("both")),
    }));
    let text = text.replace("\"operationId\":null", "\"summary\":\"Posts.\"");
    let project = project(&server, ("o.json", &text), "");
    for (args, line) in [
        (["post_oauth2_token"].as_slice(), "POST /oauth2/token"),
        (&["post_oauth2_token_refresh"], "POST /oauth2/token"),
        (&["jobs", "X-Amz-Target=Jobs.List"], "POST /"),
        (&["both", "id=7"], "POST /a/7?x=1"),
    ] {
        assert_eq!(first_line(&requested(&project, &server, args)), line);
    }
}

#[test]
fn a_credential_that_is_an_ordinary_parameter_was_asked_of_the_model() {
    let server = Server::start();
    let token = |place: &str, name: &str| json!([{ "name": name, "in": place, "required": true, "schema": { "type": "string" } }]);
    let mut text: Value = serde_json::from_str(&document(&json!({
        "/chat": { "post": { "operationId": "cp", "parameters": token("header", "token") } },
        "/list": { "get": { "operationId": "ls", "parameters": token("query", "token") } },
        "/cookie": { "parameters": token("cookie", "sid"), "get": { "operationId": "ck" } },
        "/other": { "get": { "operationId": "other" } },
    })))
    .unwrap();
    text["components"]["securitySchemes"]["o"] = json!({ "type": "oauth2", "flows": {} });
    text["security"] = json!([{ "o": [] }]);
    let text = text.to_string();
    let auth = "auth = { token = 'secret:KEY', sid = 'secret:KEY' }";
    let project = self::project(&server, ("o.json", &text), auth);
    let sent = requested(&project, &server, &["cp"]).to_lowercase();
    assert!(
        sent.contains(&format!("\r\ntoken: {SECRET}\r\n")) && !sent.contains("authorization"),
        "{sent}"
    );
    let sent = requested(&project, &server, &["ls"]);
    assert_eq!(first_line(&sent), format!("GET /list?token={SECRET}"));
    let sent = requested(&project, &server, &["ck"]).to_lowercase();
    assert!(sent.contains(&format!("\r\ncookie: sid={SECRET}\r\n")), "{sent}");
    let menu = project.json(&["menu"]).1.to_string();
    assert!(!menu.contains("\"token\"") && !menu.contains("\"sid\""), "{menu}");
    // The names of headers ignore case.
    let lower = self::project(&server, ("o.json", &text), "auth = { ToKeN = 'secret:KEY' }");
    let sent = requested(&lower, &server, &["cp"]).to_lowercase();
    assert!(sent.contains(&format!("\r\ntoken: {SECRET}\r\n")), "{sent}");
    // Without a parameter to fill, the scheme is needed.
    let why = project.toolcrib(&["menu", "--why"]).stdout;
    assert!(why.contains("security scheme `o`"), "{why}");
    // A scheme beside it is sent too, and an unknown name is an error.
    let both = self::project(
        &server,
        ("o.json", &text),
        "auth = { token = 'secret:KEY', o = 'secret:KEY' }",
    );
    let sent = requested(&both, &server, &["cp"]).to_lowercase();
    assert!(sent.contains(&format!("\r\nauthorization: bearer {SECRET}\r\n")), "{sent}");
    let unknown = self::project(&server, ("o.json", &text), "auth = { tokn = 'secret:KEY' }");
    let said = unknown.toolcrib(&["check"]);
    assert_eq!(said.code, Some(2), "{}", said.stdout);
    assert!(said.stderr.contains("no security scheme `tokn`, nor a parameter"), "{}", said.stderr);
}

#[test]
fn what_a_document_has_twice_was_lost_silently() {
    let server = Server::start();
    let text = r##"{"openapi": "3.0.3", "components": {"pathItems": {"d": {"delete": {}}}}, "paths": {
        "/a": {"get": {"operationId": "gone"}},
        "/a": {"get": {"operationId": "same"}, "trace": {}, "x-note": 1, "summary": "A."},
        "/b/{id}": {
            "get": {"operationId": "same"},
            "parameters": [{"name": "id", "in": "path"}, {"name": "id", "in": "path"}, {"name": "id", "in": "query"}],
            "put": {"parameters": [
                {"name": "X-A", "in": "header"}, {"name": "x-a", "in": "header"},
                {"name": "q", "in": "query"}, {"name": "q", "in": "query"}, {"name": "id", "in": "path"}
            ]}
        },
        "/c": {"get": "text", "put": null, "Post": {}, "gett": {}},
        "/d": {"$ref": "#/components/pathItems/d", "put": {}, "x-note": {}},
        "/none": null,
        "/b/{name}": {"get": {"operationId": "b2"}},
        "no-slash": {"get": {"operationId": "lost"}}
    }}"##;
    let project = project(&server, ("o.json", text), "");
    let said = warnings(&project);
    for part in [
        "keys that occur twice in an object: `/a`",
        "the operationId `same` more than once: `GET /a`, `GET /b/{id}`",
        "one operation more than once: `GET /b/{id}`, `GET /b/{name}`",
        "paths that cannot be read: `/none`, `no-slash`",
        "operations of the method TRACE, which is not called: `TRACE /a`",
        "operations that are not maps: `GET /c`, `PUT /c`",
        "unknown keys of paths: `Post /c`, `gett /c`",
        "operations beside a `$ref`, which replaces them: `PUT /d`",
        "parameters more than once in a list: `id in path of /b/{id}`, `x-a in header of PUT /b/{id}`, \
         `q in query of PUT /b/{id}`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let yaml = "openapi: 3.0.3\npaths:\n  /a: {get: {operationId: x, operationId: y}}\n";
    let project = self::project(&server, ("o.yaml", yaml), "");
    assert!(warnings(&project).contains("`operationId (line 3)`"));
    assert_eq!(first_line(&requested(&project, &server, &["y"])), "GET /a");
}

/// Patterns of ECMA-262, Python and .NET that are not linear, each with a text that it matches and one that it
/// does not.
const PATTERNS: [(&str, &str, &str); 7] = [
    ("^(?!www\\.)[a-z.]+$", "api.example", "www.example"),
    ("^(?=.*\\d)(?=.*[a-z]).{4,}$", "abc1", "abcd"),
    ("(?<=@)example$", "a@example", "a.example"),
    ("^[a-z]+(?<!-x)$", "abc", "ABC"),
    ("^(?<q>['\"]).*\\k<q>$", "'a'", "'a\""),
    ("^(a|b)\\1$", "aa", "ab"),
    ("^(?!0)\\d+$", "12", "\u{661}\u{662}"),
];

#[test]
fn a_pattern_of_another_dialect_removed_its_neighbors() {
    let server = Server::start();
    for (pattern, ..) in
        PATTERNS.into_iter().chain([("^[", "", ""), ("^(?>a+)b$", "", ""), ("(?&x)", "", "")])
    {
        let body = json!({ "type": "object", "properties": {
            "a": { "type": "string", "description": "A name.", "pattern": pattern },
            "b": { "type": "string", "pattern": "^x+$" },
            "c": { "not": { "pattern": pattern } },
            "d": { "oneOf": [{ "pattern": pattern }, { "minLength": 2 }] },
        }, "patternProperties": { (pattern): { "type": "integer" } }, "additionalProperties": false });
        let text = document(&json!({ "/a": { "post": { "operationId": "a", "requestBody": {
            "content": { "application/json": { "schema": body } } } } } }));
        let project = project(&server, ("o.json", &text), "");
        let all = r#"body={"a": "any", "b": "xx", "c": "any", "d": "any", "other": 1}"#;
        requested(&project, &server, &["a", all]);
        let refused = project.toolcrib(&["call", "a", r#"body={"b": "yy"}"#]);
        assert_ne!(refused.code, Some(0), "{pattern}: {}", refused.stdout);
        let shown = project.json(&["tools"]).1.to_string();
        let said = format!("A name. Must match the pattern {pattern}, which the server checks.");
        assert!(shown.contains(json!(said).to_string().trim_matches('"')), "{pattern}: {shown}");
        assert!(warnings(&project).contains("only the server checks some patterns"), "{pattern}");
    }
}

/// Runs a tool of the project with each pattern: a fitting text succeeds, another one is refused. Going back is
/// bounded, and a text that exceeds the bound is refused.
fn each_pattern(
    tool: impl Fn(&str) -> String,
    files: &[(&str, &str)],
    succeeds: impl Fn(&Value, &str),
) {
    let of = |pattern: &str| {
        let toml = tool(&json!(pattern).to_string());
        Project::of(&[&[("toolcrib.toml", toml.as_str())], files].concat())
    };
    let refused = |project: &Project, text: &str| {
        let (_, refused) = project.json(&["call", "echo_text", &format!("q={text}")]);
        assert_eq!(refused["code"], json!("input_invalid"), "{text}: {refused}");
        refused["value"].as_str().unwrap().to_owned()
    };
    for (pattern, fits, differs) in PATTERNS {
        let project = of(pattern);
        let (code, called) = project.json(&["call", "echo_text", &format!("q={fits}")]);
        assert_eq!(code, Some(0), "{pattern}: {called}");
        succeeds(&called["value"], fits);
        let said = refused(&project, differs);
        assert!(said.contains("`q`"), "{pattern}: {said}");
    }
    let said = refused(&of("^(?!x)(a|a)*\\1b$"), &"a".repeat(60));
    assert!(said.contains("`q`: comparing it with its pattern takes too many steps"), "{said}");
    // This one is not compared at all.
    let said = refused(&of("^(?!x)[a-z]+$"), &"a".repeat(5_000));
    assert!(said.contains("`q`: comparing it with its pattern takes too many steps"), "{said}");
    let broken = of("^(?!x)[").toolcrib(&["check"]);
    assert_eq!(broken.code, Some(2), "{}", broken.stdout);
    assert!(broken.stderr.contains("the pattern cannot be read"), "{}", broken.stderr);
}

#[test]
fn a_pattern_with_look_around_withheld_a_tool_of_the_project() {
    let server = Server::start();
    let port = server.port;
    let tool = |pattern: &str| {
        format!(
            "policy_default = 'allow'\n[[tool]]\nkind = 'http'\nname = 'echo_text'\n\
             description = 'Gets.'\nurl = 'http://127.0.0.1:{port}/?q={{q}}'\n\
             allow_addresses = ['127.0.0.1']\n\
             [tool.params]\nq = {{ type = 'string', pattern = {pattern} }}\n"
        )
    };
    each_pattern(tool, &[], |_, _| ());
    // Each call that succeeds is one request, and a refused one is none.
    assert_eq!(server.asked().len(), PATTERNS.len());
}

#[test]
fn a_pattern_with_look_around_withheld_a_command() {
    let tool = |pattern: &str| {
        format!(
            "policy_default = 'allow'\n[[tool]]\nkind = 'command'\nname = 'echo_text'\n\
             description = 'Prints a text.'\nprogram = 'echo'\nargs = ['{{q}}']\n\
             [tool.params]\nq = {{ type = 'string', pattern = {pattern} }}\n"
        )
    };
    each_pattern(tool, &[], |value, fits| assert_eq!(value, fits));
}

#[test]
fn a_pattern_with_look_around_withheld_a_statement() {
    let tool = |pattern: &str| {
        format!(
            "policy_default = 'allow'\n[database.d]\nfile = 'd.db'\nseed = 'd.sql'\n\
             [[tool]]\nkind = 'sql'\nname = 'echo_text'\ndescription = 'Selects a text.'\n\
             statements = ['SELECT :q AS text']\n\
             [tool.params]\nq = {{ type = 'string', pattern = {pattern} }}\n"
        )
    };
    let files = [("d.sql", "CREATE TABLE t (id INTEGER);")];
    each_pattern(tool, &files, |value, fits| {
        let row = json!({ "text": fits }).to_string();
        assert!(value.as_str().unwrap().contains(&row), "{value}");
    });
}

#[test]
fn a_pattern_with_look_around_withheld_a_tool_of_a_server() {
    for (pattern, _, differs) in PATTERNS {
        let schema = json!({ "type": "object", "properties": {
            "q": { "type": "string", "pattern": pattern }, "n": { "type": "string", "pattern": "^x+$" } } });
        let tool = json!({ "name": "echo_text", "description": "Calls.", "inputSchema": schema });
        let tools = json!({ "tools": [tool], "prompts": [] }).to_string();
        let toml = "policy_default = 'allow'\n[mcp.s]\ncommand = 'python3'\nargs = ['server.py']\n";
        let files =
            [("toolcrib.toml", toml), ("server.py", mcp_server::SERVER), ("tools.json", &tools)];
        let project = Project::of(&files);
        // The server decides about the pattern, and this side about its neighbor.
        let (code, called) = project.json(&["call", "mcp__s__echo_text", &format!("q={differs}")]);
        assert_eq!(code, Some(0), "{pattern}: {called}");
        assert!(called["value"].as_str().unwrap().contains("called echo_text"), "{called}");
        let (_, refused) = project.json(&["call", "mcp__s__echo_text", "n=y"]);
        assert_eq!(refused["code"], json!("input_invalid"), "{pattern}: {refused}");
        let shown = project.json(&["tools"]).1.to_string();
        let said = format!("Must match the pattern {pattern}, which the server checks.");
        assert!(shown.contains(json!(said).to_string().trim_matches('"')), "{pattern}: {shown}");
    }
}

/// Runs a program and prints its exit code and its largest memory in KiB.
#[cfg(target_os = "linux")]
const PEAK: &str = "import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";

/// The bytes of a document, and the largest memory of `check` over it. Half of the operations share one schema, and
/// the others have one of several, of which each refers to the next.
#[cfg(target_os = "linux")]
fn peak_of_check(server: &Server, operations: usize) -> (usize, u64) {
    const SHAPES: usize = 40;
    let properties: serde_json::Map<_, _> = (0..30)
        .map(|i| (format!("property_{i}"), json!({ "type": "string", "maxLength": 40 })))
        .collect();
    let reference =
        |shape: usize| json!({ "$ref": format!("#/components/schemas/Shared_{shape}") });
    let parameters = json!([
        { "name": "id", "in": "query", "description": "The identifier.", "schema": { "type": "string" } },
        { "name": "limit", "in": "query", "description": "How many.", "schema": { "type": "integer" } },
    ]);
    let paths: serde_json::Map<_, _> = (0..operations)
        .map(|i| {
            let shared = json!({
                "description": "A record.",
                "content": { "application/json": { "schema": reference(if i % 2 == 0 { SHAPES - 1 } else { i % SHAPES }) } },
            });
            let operation = json!({ "post": {
                "operationId": format!("op_{i}"),
                "summary": format!("Changes the record {i}."),
                "parameters": parameters,
                "requestBody": shared,
                "responses": { "200": shared },
            } });
            (format!("/path_{i}"), operation)
        })
        .collect();
    let mut text: Value = serde_json::from_str(&document(&json!(paths))).unwrap();
    for shape in 0..SHAPES {
        let mut properties = properties.clone();
        if shape + 1 < SHAPES {
            properties.insert("next".to_owned(), reference(shape + 1));
        }
        text["components"]["schemas"][format!("Shared_{shape}")] =
            json!({ "type": "object", "properties": properties });
    }
    let text = text.to_string();
    let project = project(server, ("o.json", &text), "");
    let check = project.command(&["check"]);
    // The kernel has the largest memory of a child that has ended.
    let output = std::process::Command::new("python3")
        .args(["-c", PEAK])
        .arg(check.get_program())
        .args(check.get_args())
        .envs(check.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env(VARIABLE, SECRET)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let (code, peak) = said.trim().split_once(' ').unwrap_or_else(|| panic!("{said}{errors}"));
    assert_eq!(code, "0", "{errors}");
    (text.len(), peak.parse::<u64>().unwrap() * 1024)
}

/// The limit of operations that become tools.
#[cfg(target_os = "linux")]
const MOST_OPERATIONS: usize = 5_000;

#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_document_grew_with_operations_times_schemas() {
    let server = Server::start();
    let (_, few) = peak_of_check(&server, 10);
    let (bytes, all) = peak_of_check(&server, MOST_OPERATIONS);
    let times = all.saturating_sub(few) / u64::try_from(bytes).unwrap();
    assert!(times <= 40, "{times} times the {bytes} bytes of the document");
}
