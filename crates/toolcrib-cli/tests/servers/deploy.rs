//! The files of `deploy/`: they are valid and agree, and two gateways with the proxy before them lose no call while each is
//! restarted.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolcrib_config::yaml::{YamlPart, read_yaml};
use toolcrib_skip::skip;
use toolcrib_testbed::PostgresServer;

use crate::{
    gateway::Http,
    support::{Project, in_full, toolcrib, wait_for},
};

const TOKEN: &str = "a-token-of-a-test-0001";
const CALLERS: usize = 6;

/// A tool that takes as long as a call of a server.
const NAP: &str = r#"
[[tool]]
kind = "sql"
name = "nap"
description = "Naps."
database = "shop"
read_only = true
statements = ["SELECT 'rested' AS nap FROM pg_sleep(0.2)"]
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn haproxy() -> Option<&'static str> {
    let found = |program: &&str| Command::new(program).arg("-v").output().is_ok();
    ["haproxy", "/usr/sbin/haproxy"].into_iter().find(found)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The URL of a new database.
fn database(server: &PostgresServer, script: &str) -> String {
    server.url("owner", &server.database(script).unwrap())
}

/// A gateway with its own home, state and copy of the project.
struct Replica {
    project: Project,
    port: u16,
    variables: Vec<(&'static str, String)>,
}

impl Replica {
    fn new(server: &PostgresServer) -> Self {
        let shop = database(server, "CREATE TABLE orders AS SELECT 1 AS id");
        let file = fs::read_to_string(folder().join("gateway/toolcrib.toml")).unwrap();
        // The server of the tests does not sync to the disk.
        let file = file.replace("[sessions]\n", "[sessions]\naccept_loss = true\n");
        let file = file.replace("/state/", "") + NAP;
        let variables = vec![("SHOP_URL", shop)];
        Self { project: Project::of(&[("toolcrib.toml", &file)]), port: free_port(), variables }
    }

    fn start(&self, shared: &[(&'static str, String)]) -> Http {
        let mut command = self.project.command(&["serve"]);
        command.env("XDG_CONFIG_HOME", self.project.path().join("config"));
        command.envs(shared.iter().chain(&self.variables).map(|(name, value)| (name, value)));
        Http::start_at(
            &mut command,
            &self.port.to_string(),
            &self.project.path().join("errors.txt"),
        )
    }

    /// The calls that were made here.
    fn audited(&self) -> usize {
        let lines = fs::read_to_string(self.project.path().join("audit.jsonl")).unwrap_or_default();
        lines.lines().filter(|line| line.contains(r#""code":"ok""#)).count()
    }
}

fn calls(http: &Http) -> bool {
    http.get("/metrics").1.contains("toolcrib_calls_total{source=")
}

#[test]
fn a_rolling_restart_behind_the_proxy_loses_no_call_and_makes_none_twice() {
    let Some(server) = PostgresServer::shared() else { return };
    let Some(haproxy) = haproxy() else {
        return skip("HAProxy is not installed; install it, such as by `apt-get install haproxy`");
    };
    let shared = [
        ("STORE_URL", database(server, "")),
        ("MARKS_URL", database(server, "")),
        ("APPROVALS_KEY", "0123456789abcdef0123456789abcdef".to_owned()),
        ("ANA_TOKEN", TOKEN.to_owned()),
    ];
    let replicas = [Replica::new(server), Replica::new(server)];
    let mut running = replicas.each_ref().map(|replica| Some(replica.start(&shared)));
    let at = format!("127.0.0.1:{}", free_port());
    let gateways = replicas.each_ref().map(|replica| format!("127.0.0.1:{}", replica.port));
    let mut proxy = Command::new(haproxy);
    proxy.arg("-db").arg("-f").arg(folder().join("haproxy.cfg"));
    proxy.env("TOOLCRIB_BIND", &at).env("TOOLCRIB_HOST", "127.0.0.1");
    proxy.env("TOOLCRIB_GATEWAY_1", &gateways[0]).env("TOOLCRIB_GATEWAY_2", &gateways[1]);
    let proxy = proxy.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let mut proxy = Http::of(proxy, at);
    wait_for(|| std::net::TcpStream::connect(proxy.address()).is_ok());
    let list = |proxy: &Http| proxy.post(Some(TOKEN), "tools/list", &json!({}), None);
    wait_for(|| list(&proxy).0 == "200");
    assert!(list(&proxy).1.contains(r#""name":"nap""#));
    proxy.path = "/mcp/shop";
    let (status, of_shop) = list(&proxy);
    assert!(status == "200" && of_shop.contains("count_orders"), "{of_shop}");
    assert!(!of_shop.contains(r#""name":"nap""#), "{of_shop}");
    proxy.path = "/mcp/shops";
    assert_eq!(list(&proxy).0, "404");
    proxy.path = "/mcp";
    let nap =
        || proxy.post(Some(TOKEN), "tools/call", &json!({ "name": "nap", "arguments": {} }), None);

    // Only MCP passes.
    for path in ["/metrics", "/readyz", "/mcpx"] {
        assert_eq!(proxy.get(path).0, "404", "{path}");
    }
    let session = proxy.begin(TOKEN);
    for _ in 0..4 {
        let (status, answer) = proxy.post(Some(TOKEN), "tools/list", &json!({}), Some(&session));
        assert!(status == "200" && answer.contains("count_orders"), "{answer}");
    }

    let (ends, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let call = || {
            while !ends.load(Ordering::SeqCst) {
                let (status, answer) = nap();
                assert!(status == "200" && answer.contains("rested"), "{answer}");
                made.fetch_add(1, Ordering::SeqCst);
            }
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        let is_lost = || callers.iter().any(thread::ScopedJoinHandle::is_finished);
        for _ in 0..if in_full() { 10 } else { 2 } {
            for (replica, running) in replicas.iter().zip(&mut running) {
                let http = running.as_ref().unwrap();
                wait_for(|| calls(http) || is_lost());
                assert_eq!(running.take().unwrap().end(), Some(0));
                let again = running.insert(replica.start(&shared));
                // The proxy has seen that it is back.
                wait_for(|| calls(again) || is_lost());
            }
        }
        thread::sleep(Duration::from_millis(200));
        ends.store(true, Ordering::SeqCst);
    });
    for http in running.into_iter().flatten() {
        assert_eq!(http.end(), Some(0));
    }
    let (made, audited) = (made.into_inner(), replicas.iter().map(Replica::audited).sum::<usize>());
    assert_eq!(audited, made, "each call was made once");
    assert!(made > 2 * CALLERS, "{made}");
}

/// The document of a file as JSON; of scalars without quotes, whole numbers are numbers.
fn yaml(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    let read = read_yaml(&text, 32, |part, _| {
        Ok::<_, ()>(match part {
            YamlPart::Scalar(scalar) => match scalar.text.parse::<i64>() {
                Ok(number) if scalar.is_plain => number.into(),
                _ => Value::from(&*scalar.text),
            },
            YamlPart::List(items) => items.into(),
            YamlPart::Map(entries) => {
                let count = entries.len();
                let key = |key: Value| key.as_str().map_or(key.to_string(), str::to_owned);
                let entries = entries.into_iter().map(|(name, value)| (key(name), value));
                let map: Map<_, _> = entries.collect();
                assert_eq!(map.len(), count, "{}: a key is repeated", path.display());
                map.into()
            }
            YamlPart::Alias(_) => panic!("{}: an alias", path.display()),
        })
    });
    read.unwrap_or_else(|error| panic!("{}: {error:?}", path.display())).unwrap()
}

/// Seconds of a text such as `20s`.
fn seconds(text: &Value) -> i64 {
    text.as_str().unwrap().trim_end_matches('s').parse().unwrap()
}

/// Longer than what the program does after `drain`: connections end within 5 seconds, spans within 3.
const AFTER_DRAIN: i64 = 8;

#[test]
fn the_manifests_agree_with_each_other_and_with_the_project() {
    let project = Project::of(&[]);
    fs::copy(folder().join("gateway/toolcrib.toml"), project.path().join("toolcrib.toml")).unwrap();
    let checked = project.toolcrib(&["check", "--offline"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let said = checked.stdout + &checked.stderr;
    assert!(!said.contains("nothing refers to"), "{said}");
    let file: toml_edit::DocumentMut =
        fs::read_to_string(folder().join("gateway/toolcrib.toml")).unwrap().parse().unwrap();
    let drain = seconds(&file["serve"]["drain"].as_str().unwrap().into());

    let compose = yaml(&folder().join("compose.yaml"));
    let secrets = fs::read_to_string(folder().join("secrets.env.example")).unwrap();
    for name in ["gateway-1", "gateway-2"] {
        let service = &compose["services"][name];
        assert!(seconds(&service["stop_grace_period"]) >= drain + AFTER_DRAIN, "{service}");
    }
    let kubernetes = folder().join("kubernetes");
    let manifest = |name: &str| yaml(&kubernetes.join(name));
    let secret = manifest("secret.example.yaml");
    for (name, _) in file["secrets"].as_table().unwrap() {
        assert!(secrets.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}");
        assert!(secret["stringData"][name].is_string(), "{name}");
    }
    for name in manifest("kustomization.yaml")["resources"].as_array().unwrap() {
        let listed = manifest(name.as_str().unwrap());
        assert!(listed["kind"].is_string() && listed["apiVersion"].is_string(), "{name}");
    }

    let deployment = manifest("deployment.yaml");
    let pod = &deployment["spec"]["template"]["spec"];
    let gateway = &pod["containers"][0];
    let slept = &gateway["lifecycle"]["preStop"]["exec"]["command"];
    assert_eq!(slept[0], "sleep");
    let slept: i64 = slept[1].as_str().unwrap().parse().unwrap();
    let grace = pod["terminationGracePeriodSeconds"].as_i64().unwrap();
    assert!(grace >= slept + drain + AFTER_DRAIN, "{grace}");
    let args: Vec<_> = gateway["args"].as_array().unwrap().iter().collect();
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        let get = &gateway[probe]["httpGet"];
        assert_eq!(get["httpHeaders"][0]["name"], "Host", "{probe}");
        let host = &get["httpHeaders"][0]["value"];
        let is_allowed = args.windows(2).any(|pair| *pair[0] == "--allow-host" && pair[1] == host);
        assert!(is_allowed, "{probe}: {host}");
        assert_eq!(get["port"], gateway["ports"][0]["name"]);
    }
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let selectors = [
        deployment["spec"]["selector"]["matchLabels"].clone(),
        manifest("service.yaml")["spec"]["selector"].clone(),
        manifest("pdb.yaml")["spec"]["selector"]["matchLabels"].clone(),
    ];
    for selector in selectors {
        let mut selected = selector.as_object().unwrap().iter();
        assert!(
            selected.len() > 0 && selected.all(|(key, value)| labels[key] == *value),
            "{labels}"
        );
    }
    // The options exist.
    let help = toolcrib().args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let compose = compose["services"]["gateway-1"]["command"].as_array().unwrap().clone();
    for option in args.into_iter().chain(&compose).filter_map(Value::as_str) {
        assert!(!option.starts_with("--") || help.contains(option), "{option}");
    }
}

#[test]
fn the_configuration_of_the_proxy_is_valid() {
    let Some(haproxy) = haproxy() else {
        return skip("HAProxy is not installed; install it, such as by `apt-get install haproxy`");
    };
    let mut command = Command::new(haproxy);
    command.arg("-c").arg("-f").arg(folder().join("haproxy.cfg"));
    let compose = yaml(&folder().join("compose.yaml"));
    let variables = compose["services"]["proxy"]["environment"].as_object().unwrap();
    for (name, value) in variables {
        command.env(name, value.as_str().unwrap());
    }
    let checked = command.output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
