//! Two transcripts, side by side.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    api::Api,
    differences::{self, Listed},
};

/// One place at which two values are not equal.
#[derive(Debug)]
pub(crate) struct Difference {
    /// A JSON pointer.
    pub(crate) at: String,
    /// Our value.
    pub(crate) ours: Option<Value>,
    /// The SDK's value.
    pub(crate) theirs: Option<Value>,
}

/// All differences of one vendor.
pub(crate) struct Comparison {
    listed: Vec<(&'static Listed, bool)>,
    /// The difference, and its runs.
    unlisted: BTreeMap<String, BTreeSet<String>>,
}

impl Comparison {
    pub(crate) fn new(api: Api) -> Self {
        Self::except(differences::of(api).iter())
    }

    fn except(listed: impl Iterator<Item = &'static Listed>) -> Self {
        Self { listed: listed.map(|listed| (listed, false)).collect(), unlisted: BTreeMap::new() }
    }

    /// Compares the two transcripts of one run.
    pub(crate) fn add(&mut self, run: &str, ours: &Value, theirs: &Value) {
        let mut found = Vec::new();
        walk("", Some(ours), Some(theirs), &mut found);
        for difference in found {
            let fitting = self.listed.iter_mut().filter(|(listed, _)| {
                matches(listed.run, run)
                    && matches(listed.at, &difference.at)
                    && (listed.fits)(difference.ours.as_ref(), difference.theirs.as_ref())
            });
            // All that match: their order must not matter.
            if fitting.map(|(_, occurs)| *occurs = true).count() == 0 {
                let at = positions_left_out(&difference.at);
                let (ours, theirs) = (shown(&difference.ours), shown(&difference.theirs));
                let what = format!("{at}\n    ours {ours}\n    SDK  {theirs}");
                self.unlisted.entry(what).or_default().insert(run.to_owned());
            }
        }
    }

    /// Differences that are not listed, and listed ones that do not occur.
    pub(crate) fn report(self) -> Result<(), String> {
        let mut report = String::new();
        for (what, runs) in &self.unlisted {
            let some: Vec<_> = runs.iter().take(6).map(String::as_str).collect();
            let more = if runs.len() > some.len() { ", …" } else { "" };
            report.push_str(&format!(
                "{what}\n    in   {}{more} ({})\n",
                some.join(", "),
                runs.len()
            ));
        }
        for (listed, occurs) in self.listed {
            if !occurs {
                let Listed { run, at, why, .. } = listed;
                report.push_str(&format!("no longer differs: {run} {at} ({why})\n"));
            }
        }
        if report.is_empty() { Ok(()) } else { Err(report) }
    }
}

fn walk(at: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<Difference>) {
    match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let only_theirs = theirs.keys().filter(|key| !ours.contains_key(*key));
            for key in ours.keys().chain(only_theirs) {
                walk(&format!("{at}/{key}"), ours.get(key), theirs.get(key), found);
            }
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => {
            for position in 0..ours.len().max(theirs.len()) {
                let at = format!("{at}/{position}");
                walk(&at, ours.get(position), theirs.get(position), found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(Difference {
            at: at.to_owned(),
            ours: ours.cloned(),
            theirs: theirs.cloned(),
        }),
    }
}

fn shown(value: &Option<Value>) -> String {
    match value {
        Some(value) => value.to_string().chars().take(300).collect(),
        None => "(nothing)".to_owned(),
    }
}

/// One difference that occurs at many places is shown once.
fn positions_left_out(at: &str) -> String {
    let part = |part: &'_ str| match part.parse::<usize>() {
        Ok(_) => "*".to_owned(),
        Err(_) => part.to_owned(),
    };
    at.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Whether a path matches a pattern: part by part, where `*` is any part, and `**` at the end is
/// the rest.
fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    for wanted in pattern.split('/') {
        if wanted == "**" {
            return true;
        }
        match parts.next() {
            Some(part) if wanted == "*" || wanted == part => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

mod tests {
    use serde_json::json;

    use super::*;

    static WORDS: Listed = Listed {
        run: "cases/*",
        at: "/requests/*/words",
        fits: |ours, _| ours.is_none(),
        why: "a test",
    };

    fn report(run: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
        let mut comparison = Comparison::except(std::iter::once(&WORDS));
        comparison.add(run, ours, theirs);
        comparison.report()
    }

    #[test]
    fn a_difference_is_found_where_it_is() {
        let found =
            report("cases/one", &json!({ "a": [1, { "b": null }] }), &json!({ "a": [1, {}, 2] }));
        let found = found.unwrap_err();
        assert!(
            found.contains("/a/*/b\n    ours null\n    SDK  (nothing)\n    in   cases/one (1)"),
            "{found}"
        );
        assert!(found.contains("/a/*\n    ours (nothing)\n    SDK  2"), "{found}");
    }

    #[test]
    fn what_is_listed_may_differ_and_has_to() {
        let theirs = json!({ "requests": [{ "words": 1 }] });
        assert_eq!(report("cases/one", &json!({ "requests": [{}] }), &theirs), Ok(()));
        assert!(report("streams/one", &json!({ "requests": [{}] }), &theirs).is_err());
        assert!(report("cases/one", &json!({ "requests": [{ "words": 2 }] }), &theirs).is_err());
        let unchanged = report("cases/one", &theirs, &theirs).unwrap_err();
        assert_eq!(unchanged, "no longer differs: cases/* /requests/*/words (a test)\n");
    }
}
