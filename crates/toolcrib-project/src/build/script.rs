//! Checks the calls of a scripted model against the existing tools.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Document, Problems, Table, suggest};

use crate::bind::names::Names;

/// Warns of each call to an unknown tool, unless the script marks it as intended. Other errors of
/// the script were checked before.
pub(crate) fn warn_of_unknown_tools(file: &str, text: String, names: &Names, problems: &Problems) {
    let tools = names.all_tools();
    let warn = |call: &Table<'_>| {
        call.ignore_the_rest();
        let is_meant = call.boolean("even_if_not_offered").unwrap_or_default();
        let is_known = |name: &Arc<str>| tools.contains(name) || names.is_of_a_server(name);
        let Some(tool) = call.text("tool").filter(|tool| !is_meant && !is_known(&tool.value))
        else {
            return;
        };
        let message = format!(
            "the project has no tool {}: a run that reaches this call fails",
            suggest::quoted([&*tool.value])
        );
        let help = match suggest::nearest(&tool.value, tools.iter().map(|name| &**name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "if this is intended, write even_if_not_offered = true in the call".to_owned(),
        };
        problems.push(Diagnostic::warning(&tool.at, message).help(help));
    };
    let found = Problems::new(file);
    Document::new(file, text).read(&found, |script| {
        script.ignore_the_rest();
        script.tables("rule", |rule| {
            rule.ignore_the_rest();
            rule.tables("calls", warn);
        });
    });
}
