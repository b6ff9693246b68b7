//! Lists of a gateway were fetched again before each use, whatever its servers stated.

use serde_json::{Value, json};

use super::served::{Piped, message, with_metadata};
use crate::support::{Project, wait_for};

/// A server of 2026-07-28 whose lists apply as long as its argument says.
const SERVER: &str = r#"
import json, sys

name, ttl = sys.argv[1], json.loads(sys.argv[2])
hints = {"resultType": "complete", "cacheScope": "public"}
lists = {
    "tools/list": {"tools": [{"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}]},
    "prompts/list": {"prompts": [{"name": "ask"}]},
    "resources/list": {"resources": [{"uri": f"test://{name}", "name": "r"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": f"test://{name}/{{x}}", "name": "t"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "server/discover":
        info = {"name": name, "version": "1"}
        offered = {"tools": {}, "prompts": {}, "resources": {}}
        answer["result"] = {"supportedVersions": ["2026-07-28"], "capabilities": offered,
                            "serverInfo": info, "ttlMs": 0, **hints}
    elif method in lists:
        answer["result"] = {**lists[method], **({} if ttl is None else {"ttlMs": ttl}), **hints}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

const HOUR_MS: u64 = 3_600_000;

/// A list of a gateway with two servers, once both have answered, and its items.
fn listing(ttls: [&str; 2], more: &str, method: &str) -> Value {
    let [a, b] = ttls;
    let file = format!(
        "policy_default = 'allow'\n{more}\n\
         [mcp.a]\ncommand = 'python3'\nargs = ['server.py', 'a', '{a}']\n\
         [mcp.b]\ncommand = 'python3'\nargs = ['server.py', 'b', '{b}']\n"
    );
    let project = Project::of(&[("toolcrib.toml", &file), ("server.py", SERVER)]);
    let mut client = Piped::start(&mut project.command(&["serve"]));
    let mut result = Value::Null;
    // A server that is not ready states nothing.
    for method in ["tools/list", method] {
        wait_for(|| {
            result = client.ask(&message(method, &with_metadata(json!({}))))["result"].clone();
            let text = result.to_string();
            let has = |server| {
                text.contains(&format!("mcp__{server}__"))
                    || text.contains(&format!("test://{server}"))
            };
            has("a") && has("b")
        });
    }
    assert_eq!(result["cacheScope"], "private", "what is listed depends on the caller: {result}");
    result
}

#[test]
fn a_list_lost_the_time_for_which_its_servers_say_that_it_applies() {
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        for (ttls, more, is_kept) in [
            (["3600000", "86400000"], "", true),
            (["3600000", "null"], "", false),
            (["3600000", "0"], "", false),
            (["3600000", "86400000"], TAINT, false),
        ] {
            let result = listing(ttls, more, method);
            let ttl = result["ttlMs"].as_u64().unwrap();
            // Less what has passed of the hour.
            let kept = (HOUR_MS / 2..=HOUR_MS).contains(&ttl);
            assert!(if is_kept { kept } else { ttl == 0 }, "{method} {ttls:?}: {result}");
        }
    }
}

/// What a caller has read decides what it is offered.
const TAINT: &str = "[[policy]]\neffect = 'deny'\ntool = 'mcp__a__other'\ntainted = true\n";
