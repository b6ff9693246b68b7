//! A session's requests, as the program sends them in another process: with the bytes in the store.

use serde_json::Value;
use toolcrib_models::Vendor;

use crate::{
    model_faults::wire::Answer,
    models::{Prepared, reply},
    support::Project,
};

const FILE: &str = r#"
policy_default = "allow"
[[tool]]
kind = "command"
name = "look"
description = "Looks at an order."
program = "echo"
args = ["seen {order}"]
read_only = true
params = { order = { type = "integer" } }
"#;

#[test]
fn messages_and_definitions_are_sent_again_as_the_store_has_them() {
    for vendor in Vendor::ALL {
        let project = Project::of(&[("toolcrib.toml", FILE)]);
        let said = |text: &str| reply(vendor, &Answer::text(&[text]));
        let server = Prepared::new(vendor, vec![said("One."), said("Two.")]);
        let run = |message: &str| {
            let model = format!("{vendor}:desk");
            let args = ["run", message, "--session", "s", "--model", &model];
            let output = server.set(&mut project.command(&args)).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        run("The first words");
        // As a program that spells JSON otherwise would have left it.
        let store = rusqlite::Connection::open(project.state().join("sessions.db")).unwrap();
        let respelled = "UPDATE parts SET json = replace(json, '{\"', '{ \"')";
        // A message and a definition, and the prefix that is compared.
        assert_eq!(store.execute(respelled, []).unwrap(), 3, "{vendor}");
        drop(store);
        run("More words");

        let bodies: Vec<_> = server
            .requests()
            .iter()
            .map(|request| String::from_utf8(request.body.to_vec()).unwrap())
            .collect();
        let [first, second] = bodies.as_slice() else { panic!("{bodies:?}") };
        assert!(!first.contains("{ \""), "{first}");
        let value: Value = serde_json::from_str(second).unwrap();
        assert!(value.is_object() && second.contains("More words"), "{second}");
        for part in ["The first words", "Looks at an order."] {
            // Within an object of the other spelling.
            let at = second.find(part).unwrap_or_else(|| panic!("{part}: {second}"));
            let before = &second[..at];
            let (other, usual) = (before.rfind("{ \""), before.rfind("{\""));
            assert!(other > usual, "{vendor}, {part}: {second}");
        }
    }
}
