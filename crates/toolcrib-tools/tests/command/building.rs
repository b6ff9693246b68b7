//! Errors before a call, and the definition of the built tool.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;
use toolcrib_capabilities::process::{DEFAULT_MAX_OUTPUT_BYTES, ProcessLimits};
use toolcrib_tools::{
    Declaration,
    command::{ArgItem, CommandToolSpec, Stdin},
};

use crate::support::{call, errors, sh, texts, tool};

#[test]
fn a_built_tool_has_its_declaration() {
    let mut spec = tool("wc", &["-l", "--", "{file}"], texts(&["file"]));
    assert_eq!(spec.max_output_bytes, DEFAULT_MAX_OUTPUT_BYTES);
    assert_eq!(spec.limits, ProcessLimits::default());
    assert_eq!((spec.stdin, spec.allow_stray_children), (Stdin::None, false));
    assert_eq!(spec.ok_exit_codes, [0]);
    spec.declaration.origin = Some("toolcrib.toml:12".into());
    spec.env =
        vec![("A".into(), "secret:ONE".into()), ("B".into(), "{secret:TWO}, {secret:ONE}".into())];
    let tool = spec.build().unwrap();
    assert_eq!((tool.name().as_str(), tool.origin()), ("run_it", "toolcrib.toml:12"));
    assert!(tool.untrusted(), "programs print what others wrote");
    assert!(tool.annotations().read_only);
    assert_eq!(tool.input_schema()["additionalProperties"], false);
    let secrets: Vec<&str> = tool.capabilities().secrets.iter().map(AsRef::as_ref).collect();
    assert_eq!(secrets, ["ONE", "TWO"]);
    assert!(!tool.capabilities().requires_granter());
}

#[test]
fn all_errors_of_a_declaration_are_reported_together() {
    let mut spec = tool(
        "no-such-program-anywhere",
        &["--x={y}", "{", "--token=secret:T", "{secret:T}", "a\0b"],
        texts(&["used_nowhere"]),
    );
    spec.declaration.name = "no name".into();
    spec.args.push(ArgItem { when: Some("z".into()), ..ArgItem::from("-v") });
    spec.env = vec![
        ("OK".into(), "x secret:T".into()),
        ("A=B".into(), "{param}".into()),
        ("OK".into(), "\0".into()),
    ];
    spec.inherit_env = vec!["PATH".into(), "OK".into(), String::new()];
    spec.working_dir = Some("no/such/folder".into());
    spec.max_output_bytes = 0;
    spec.limits.memory = Some(0);
    spec.ok_exit_codes = vec![0, 256, -1];
    let found = errors(spec);
    assert_eq!(found.tool, "no name");
    let fields: Vec<_> = found.errors.iter().map(|e| (&*e.field, e.offset)).collect();
    assert_eq!(
        fields,
        [
            ("", None),
            ("/program", None),
            ("/args/0/value", Some(5)),
            ("/args/1/value", Some(0)),
            ("/args/2/value", Some(8)),
            ("/args/3/value", Some(1)),
            ("/args/4/value", Some(1)),
            ("/args/5/when", None),
            ("/env/OK", Some(2)),
            ("/env/A=B", None),
            ("/env/A=B", Some(1)),
            ("/env/OK", None),
            ("/env/OK", Some(0)),
            ("/inherit_env/1", None),
            ("/inherit_env/2", None),
            ("/working_dir", None),
            ("/max_output_bytes", None),
            ("/memory_max", None),
            ("/ok_exit_codes", None),
            ("/ok_exit_codes", None),
        ],
        "{found}"
    );
    let text = found.to_string();
    for said in [
        "tool `no name`: ",
        "the program: there is no program `no-such-program-anywhere` on the PATH; install it",
        "item 1 of `args`: there is no parameter `y`; declare it, or use one of `used_nowhere`",
        "`when` of item 6 of `args`: there is no parameter `z`",
        "item 5 of `args`: it contains a NUL byte",
        "the environment variable `OK`: a secret inside a text is written `{secret:NAME}`",
        "the environment variable `A=B`: the environment takes no arguments of a call",
        "the variable `OK` of `inherit_env`: this variable is declared twice",
        "the working folder: there is no folder /no/such/folder",
        "256 is not an exit code; they lie between 0 and 255",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    for position in [4, 5] {
        let secret = &found.errors[position].message;
        assert!(secret.contains("no secret is allowed here"), "{secret}");
    }
}

#[test]
fn an_unused_parameter_is_an_error_unless_stdin_receives_all() {
    let mut spec = tool("true", &["{a}"], texts(&["a", "b", "c"]));
    spec.args.push(ArgItem { when: Some("c".into()), ..ArgItem::from("-c") });
    let found = errors(spec.clone());
    assert_eq!(found.errors.len(), 1, "{found}");
    assert_eq!(found.errors[0].field, "/params/b");
    assert!(found.to_string().contains("write `{b}` in an item of `args`"), "{found}");
    spec.stdin = Stdin::Json;
    spec.build().unwrap();
    let mut spec = tool("true", &[], texts(&[]));
    spec.ok_exit_codes.clear();
    let found = errors(spec);
    assert!(found.errors[0].message.contains("it names no exit code"), "{found}");
}

#[tokio::test]
async fn programs_and_folders_are_relative_to_the_base() {
    let base = tempfile::tempdir().unwrap();
    let at = |name: &str| base.path().join(name);
    fs::create_dir(at("bin")).unwrap();
    fs::write(at("bin/where"), "#!/bin/sh\npwd\n").unwrap();
    let mut spec =
        CommandToolSpec::new(Declaration::new("where", "Where."), "./bin/where", base.path());
    let found = errors(spec.clone());
    let help = found.errors[0].help.as_deref().unwrap();
    assert!(help.starts_with("make it executable: chmod +x "), "{found}: {help}");
    fs::set_permissions(at("bin/where"), fs::Permissions::from_mode(0o755)).unwrap();
    spec.working_dir = Some("bin".into());
    let output = call(spec.clone(), json!({})).await.unwrap();
    assert_eq!(fs::canonicalize(output.value).unwrap(), fs::canonicalize(at("bin")).unwrap());
    // Without one it is where the call is.
    spec.working_dir = None;
    let output = call(spec, json!({})).await.unwrap();
    assert_eq!(
        fs::canonicalize(output.value).unwrap(),
        std::env::current_dir().unwrap().canonicalize().unwrap()
    );
    assert!(sh("exit 0", &[]).build().is_ok());
}
