//! Descriptions of parameters.

use crate::{
    catalog::LintCatalog,
    parameters::Parameter,
    report::{Finding, Findings},
    text::{name, some_of, words},
};

/// Words that announce the default of an omitted parameter.
const CUES: [&str; 28] = [
    "default",
    "defaults",
    "defaulted",
    "optional",
    "optionally",
    "omit",
    "omitted",
    "omitting",
    "absent",
    "missing",
    "unset",
    "unspecified",
    "empty",
    "blank",
    "none",
    "null",
    "unless",
    "otherwise",
    "without",
    "if",
    "when",
    "only",
    "all",
    "any",
    "every",
    "leave",
    "provided",
    "specified",
];

/// Prefixes of the description of a switch that is off by default.
const SWITCHES: [&str; 4] = ["whether", "true", "set", "enable"];

pub(super) fn undescribed(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        let undescribed = tool.parameters().iter().filter(|one| one.description().is_none());
        let names: Vec<String> = undescribed.map(|one| name(one.name())).collect();
        if names.is_empty() {
            continue;
        }
        let (what, help) = match names.len() {
            1 => ("a parameter", "describe it: its meaning"),
            _ => ("parameters", "describe them: their meaning"),
        };
        let message =
            format!("{} has {what} without a description: {}", tool.shown(), some_of(&names));
        let help = format!("{help}, unit or format, and where the model finds the value");
        findings.push(Finding::warning(message, help).of(tool).at("input_schema/properties"));
    }
}

pub(super) fn unclear_default(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        let unclear = tool.parameters().iter().filter(|parameter| is_unclear(parameter));
        let names: Vec<String> = unclear.map(|one| name(one.name())).collect();
        if names.is_empty() {
            continue;
        }
        let message =
            format!("{} does not document its behavior without {}", tool.shown(), some_of(&names));
        let help = "document it in the description (\"Default: 20\", \"All of them if omitted\"), or as \
                    `default` in the schema";
        findings.push(Finding::warning(message, help).of(tool).at("input_schema/properties"));
    }
}

/// Whether a parameter is optional and described, but without its default.
fn is_unclear(parameter: &Parameter<'_>) -> bool {
    if parameter.is_required() || parameter.get("default").is_some() {
        return false;
    }
    let Some(description) = parameter.description() else { return false };
    let mut words = words(description);
    let first = words.next().unwrap_or_default();
    let is_switch = parameter.is_switch() && SWITCHES.contains(&first.as_str());
    !is_switch && !std::iter::once(first).chain(words).any(|word| CUES.contains(&word.as_str()))
}
