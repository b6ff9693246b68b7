//! Hosts that are dialed were not shown before a project was trusted.

use crate::support::Project;

fn review(file: &str, variables: &[(&str, &str)]) -> String {
    let project = Project::of(&[("toolcrib.toml", file)]);
    let mut command = project.command(&["trust"]);
    // A project that was found, before the user trusts it.
    command.current_dir(project.path()).env("XDG_CONFIG_HOME", project.path().join("config"));
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_base_url_of_the_environment_was_not_shown() {
    let file = "[agent]\nmodel = 'openai:m'\n";
    let shown = review(file, &[("OPENAI_BASE_URL", "https://elsewhere.example/v1")]);
    assert!(shown.contains("https://elsewhere.example/v1"), "{shown}");
    assert!(shown.contains("OPENAI_BASE_URL"), "{shown}");
    let shown = review(file, &[]);
    assert!(shown.contains("https://api.openai.com"), "{shown}");
}

#[test]
fn the_host_that_a_variable_gives_a_server_was_not_shown() {
    let file = "[mcp.s]\nurl = '${SERVER_URL}/mcp?key=${SERVER_KEY}'\n";
    let variables =
        [("SERVER_URL", "https://elsewhere.example:8443"), ("SERVER_KEY", "s3cr3t-key-1")];
    let shown = review(file, &variables);
    assert!(shown.contains("now at https://elsewhere.example:8443"), "{shown}");
    assert!(!shown.contains("s3cr3t-key-1"), "{shown}");
}

#[test]
fn the_hosts_of_a_document_are_shown() {
    let document = r#"{"openapi":"3.1.0","info":{"title":"t","version":"1"},
        "servers":[{"url":"https://api.example.com/v1"}],
        "paths":{"/a":{"get":{"operationId":"a"}},
                 "/b":{"get":{"operationId":"b","servers":[{"url":"https://other.example"}]}}}}"#;
    let file = "[secrets]\nKEY = { env = 'PATH' }\n[[tool]]\nkind = 'openapi'\nfile = 'd.json'\n\
                auth = 'secret:KEY'\nallow_servers = ['https://other.example']\n";
    let project = Project::of(&[("toolcrib.toml", file), ("d.json", document)]);
    let mut command = project.command(&["trust"]);
    command.current_dir(project.path()).env("XDG_CONFIG_HOME", project.path().join("config"));
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(shown.contains("https://api.example.com/v1"), "{shown}");
    assert!(shown.contains("https://other.example"), "{shown}");
}

#[test]
fn the_public_hosts_of_tools_without_secrets_were_not_shown() {
    let tool = "policy_default = 'allow'\n[[tool]]\nkind = 'http'\nname = 'look'\ndescription = 'Looks.'\n\
                url = 'https://public.example/x'\n";
    let program = "[mcp.s]\ncommand = 'true'\n";
    let shown = review(&format!("{tool}{program}"), &[]);
    assert!(shown.contains("https://public.example/x"), "{shown}");
    // They alone need no trust.
    let project = Project::of(&[("toolcrib.toml", tool)]);
    let mut command = project.command(&["menu", "--json"]);
    command.current_dir(project.path()).env("XDG_CONFIG_HOME", project.path().join("config"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("trust"), "{output:?}");
}

#[test]
fn the_hosts_that_a_sandbox_permits_were_not_shown() {
    let file = "policy_default = 'allow'\n[mcp.s]\ncommand = 'true'\nsandbox = 'full'\n\
                sandbox_hosts = ['of-server.example']\n\
                [[tool]]\nkind = 'command'\nname = 'get'\ndescription = 'Gets.'\nprogram = 'true'\n\
                sandbox = 'full'\nsandbox_hosts = ['of-tool.example:8443']\n";
    let shown = review(file, &[]);
    for host in ["of-server.example", "of-tool.example:8443"] {
        assert!(shown.contains(host), "{host}: {shown}");
    }
}
