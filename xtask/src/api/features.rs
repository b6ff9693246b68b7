//! The features of a crate, read from its manifest.

use std::collections::{BTreeMap, BTreeSet};

/// The features of the kinds of tools that no user turns on.
const SHARED: [&str; 2] = ["declared", "default"];

/// Features by name, each with what it turns on.
pub(super) type Features<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// The features of a manifest.
pub(super) fn lists(manifest: &str) -> Features<'_> {
    let section = manifest.split("[features]").nth(1).and_then(|rest| rest.split("\n[").next());
    let entries = section.into_iter().flat_map(|section| section.split(']'));
    entries
        .filter_map(|entry| entry.split_once('['))
        .map(|(name, list)| {
            let name = name.lines().last().unwrap_or_default();
            (name.trim_end_matches([' ', '=']), list.split('"').skip(1).step_by(2).collect())
        })
        .collect()
}

/// The kinds that no feature of the facade turns on.
pub(super) fn off<'a>(facade: &Features<'_>, kinds: &Features<'a>) -> Vec<&'a str> {
    let on = |kind: &str| {
        facade.values().flatten().any(|word| *word == format!("toolcrib-tools/{kind}"))
    };
    kinds.keys().copied().filter(|kind| !SHARED.contains(kind) && !on(kind)).collect()
}

/// The crates that features of the facade turn on together with a crate, by crate.
pub(super) fn together(features: &Features<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let crate_of = |word: &str| {
        let name = word.strip_prefix("dep:").or_else(|| Some(word.split_once('/')?.0))?;
        (!name.ends_with('?')).then(|| name.replace('-', "_"))
    };
    let mut together = BTreeMap::<_, BTreeSet<_>>::new();
    for (feature, list) in features {
        let mut all = vec![*feature];
        let mut next = 0;
        while let Some(feature) = all.get(next) {
            let more = features.get(feature).into_iter().flatten();
            let more: Vec<_> = more.filter(|feature| !all.contains(feature)).copied().collect();
            all.extend(more);
            next += 1;
        }
        for name in list.iter().filter_map(|word| crate_of(word)) {
            together.entry(name).or_default().extend(all.iter().filter_map(|word| crate_of(word)));
        }
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
[features]
default = ["engine"]
# A kind.
files = ["tools", "toolcrib-tools/files"]
tools = [
    "handles",
    "dep:toolcrib-tools",
]
handles = ["dep:toolcrib-capabilities"]
testing = ["toolcrib-mcp?/mock"]

[dependencies]
serde = { features = ["derive"] }
"#;

    #[test]
    fn features_turn_on_crates_together() {
        let together = together(&lists(MANIFEST));
        let tools: Vec<_> = together["toolcrib_tools"].iter().map(String::as_str).collect();
        assert_eq!(tools, ["toolcrib_capabilities", "toolcrib_tools"]);
        assert_eq!(together["toolcrib_capabilities"].len(), 1);
        assert!(!together.contains_key("toolcrib_mcp"), "it is not turned on");
    }

    #[test]
    fn a_kind_without_a_feature_is_named() {
        let kinds = "[features]\ndeclared = []\nfiles = [\"declared\"]\nmemory = [\"declared\"]\n";
        assert_eq!(off(&lists(MANIFEST), &lists(kinds)), ["memory"]);
    }
}
