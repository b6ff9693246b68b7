//! Descriptions that a model cannot tell apart.
//!
//! The measure is Jaccard's: the words that two descriptions have in common, as a part of all of
//! their words, without stop words and plural endings. It is the simplest measure that ignores
//! order and length, can be computed by hand, and needs no model.

use std::collections::{BTreeSet, HashMap};

use crate::{
    catalog::{LintCatalog, Subject},
    report::{Finding, Findings},
    text::{name, some_of, telling_words},
};

/// Minimum percentage of common words at which descriptions are too similar.
const ALIKE_FROM: usize = 75;

/// With fewer words, one of them is a large part: they are too similar only if they are equal.
const FEW_WORDS: usize = 4;

/// Maximum number of earlier descriptions compared with one, and maximum of their words in total.
const MOST_COMPARED: usize = 500;
const MOST_WORDS_COMPARED: usize = 5_000;

struct Words<'c, 'a> {
    subject: &'c Subject<'a>,
    words: BTreeSet<String>,
}

pub(super) fn confusable(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let all: Vec<Words<'_, '_>> = catalog
        .tools()
        .iter()
        .map(|subject| Words { subject, words: telling_words(&subject.tool().description) })
        .filter(|described| !described.words.is_empty())
        .collect();
    let mut frequency: HashMap<&str, usize> = HashMap::new();
    for word in all.iter().flat_map(|described| &described.words) {
        *frequency.entry(word).or_default() += 1;
    }
    // Two similar descriptions share one of their rarest words: only these are looked up.
    let mut by_word: HashMap<&str, Vec<&Words<'_, '_>>> = HashMap::new();
    for described in &all {
        let mut rarest: Vec<&str> = described.words.iter().map(String::as_str).collect();
        rarest.sort_by_key(|word| (frequency.get(word).copied().unwrap_or_default(), *word));
        rarest.truncate(rarest.len() - (rarest.len() * ALIKE_FROM).div_ceil(100) + 1);
        let before = rarest.iter().filter_map(|word| by_word.get(word)).flatten();
        let mut left = MOST_WORDS_COMPARED;
        let affordable = |before: &&&Words<'_, '_>| {
            let words = before.words.len() + described.words.len();
            left.checked_sub(words).inspect(|rest| left = *rest).is_some()
        };
        let nearest = before
            .take(MOST_COMPARED)
            .take_while(affordable)
            .filter(|before| before.subject.tool().name != described.subject.tool().name)
            .map(|before| (alike(&before.words, &described.words), before))
            .filter(|(alike, before)| {
                let few = before.words.len().min(described.words.len()) < FEW_WORDS;
                *alike >= if few { 100 } else { ALIKE_FROM }
            })
            // Of equal ones the first.
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        if let Some((alike, before)) = nearest {
            findings.push(finding(described, before, alike));
        }
        for word in rarest {
            by_word.entry(word).or_default().push(described);
        }
    }
}

/// The percentage of common words.
fn alike(a: &BTreeSet<String>, b: &BTreeSet<String>) -> usize {
    let common = a.intersection(b).count();
    common * 100 / (a.len() + b.len() - common).max(1)
}

fn finding(described: &Words<'_, '_>, other: &Words<'_, '_>, alike: usize) -> Finding {
    let (this, that) = (described.subject.shown(), other.subject.shown());
    let message = format!(
        "the descriptions of {this} and {that} have {alike} % of their words in common; {}",
        difference(described, other)
    );
    let help = "say in each when to use it instead of the other, with words that the other lacks";
    Finding::warning(message, help).of(described.subject).at("description")
}

/// The difference between two tools, if there is one.
fn difference(this: &Words<'_, '_>, that: &Words<'_, '_>) -> String {
    let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<String> {
        a.difference(b).map(|word| format!("\"{word}\"")).collect()
    };
    let said = |subject: &Subject<'_>, verb: &str, only: &[String]| {
        (!only.is_empty()).then(|| format!("only {} {verb} {}", subject.shown(), some_of(only)))
    };
    let mut parts: Vec<String> = [
        said(this.subject, "says", &only(&this.words, &that.words)),
        said(that.subject, "says", &only(&that.words, &this.words)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        let taken = |subject: &Subject<'_>| -> BTreeSet<String> {
            subject.parameters().iter().map(|parameter| name(parameter.name())).collect()
        };
        let (these, those) = (taken(this.subject), taken(that.subject));
        let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<String> {
            a.difference(b).cloned().collect()
        };
        parts.extend(said(this.subject, "takes", &only(&these, &those)));
        parts.extend(said(that.subject, "takes", &only(&those, &these)));
    }
    if parts.is_empty() {
        return "only their names differ".to_owned();
    }
    parts.join(", ")
}
