//! What is said of parameters.

use crate::{
    catalogue::Catalogue,
    parameters::Parameter,
    report::{Finding, Findings},
    text::{name, some_of, words},
};

/// Words by which a description says what holds when the parameter is left out.
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

/// What begins the description of a switch that is off unless it is given.
const SWITCHES: [&str; 4] = ["whether", "true", "set", "enable"];

pub(super) fn undescribed(catalogue: &Catalogue<'_>, findings: &mut Findings) {
    for tool in catalogue.tools() {
        let undescribed = tool.parameters().iter().filter(|one| one.description().is_none());
        let names: Vec<String> = undescribed.map(|one| name(one.name())).collect();
        if names.is_empty() {
            continue;
        }
        let (what, help) = match names.len() {
            1 => ("a parameter", "describe it: what it is"),
            _ => ("parameters", "describe them: what each is"),
        };
        let message =
            format!("{} has {what} without a description: {}", tool.shown(), some_of(&names));
        let help = format!("{help}, in which unit or form, and where the model gets it from");
        findings.push(Finding::warning(message, help).of(tool).at("input_schema/properties"));
    }
}

pub(super) fn unclear_default(catalogue: &Catalogue<'_>, findings: &mut Findings) {
    for tool in catalogue.tools() {
        let unclear = tool.parameters().iter().filter(|parameter| is_unclear(parameter));
        let names: Vec<String> = unclear.map(|one| name(one.name())).collect();
        if names.is_empty() {
            continue;
        }
        let message = format!(
            "{} does not say what holds when it is called without {}",
            tool.shown(),
            some_of(&names)
        );
        let help = "say it in the description (\"Default: 20\", \"All of them if left out\"), or as \
                    `default` in the schema";
        findings.push(Finding::warning(message, help).of(tool).at("input_schema/properties"));
    }
}

/// Whether a parameter is optional and described, and nothing says what holds without it.
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
