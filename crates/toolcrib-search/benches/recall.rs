//! Recall of each set of needs, beside a plain search.
//!
//! `cargo xtask search-bench` runs it. `--missed` lists the needs whose tool is not among the first
//! five.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a program for developers: it reads files, prints, and may stop at an error"
)]

mod corpora;

use std::{collections::HashSet, env};

use bm25::{Document, SearchEngine, SearchEngineBuilder, Tokenizer};
use regex::RegexBuilder;
use toolcrib_search::{Index, Weights};

use self::corpora::{Catalog, DEPTH, Figures, Outcome, Ranks};

/// Needs of one search, and tools that it lists for each.
const PARTS: usize = 4;
const FOUND_PER_NEED: usize = 5;

fn main() -> Outcome<()> {
    let mut catalogs = corpora::all()?;
    corpora::add_fresh(&mut catalogs)?;
    if env::args().any(|argument| argument == "--missed") {
        catalogs.iter().for_each(missed);
        return Ok(());
    }
    println!("{}\n", of_users(&catalogs[0]));
    println!("| tools of | needs | plain R@5 | R@1 | R@3 | R@5 | R@10 | nDCG@10 |");
    println!("|---|---|---|---|---|---|---|---|");
    for catalog in &catalogs {
        let (own, plain) = (catalog.search(Weights::CHOSEN, 1), plain_bm25(catalog));
        for ((set, Figures { any, .. }), plain) in catalog.sets.iter().zip(own).zip(plain) {
            let Ranks { recall: [r1, r3, r5, r10], gain } = any;
            println!(
                "| {}: {} | {}: {} | {:.3} | {r1:.3} | {r3:.3} | {r5:.3} | {r10:.3} | {gain:.3} |",
                catalog.name,
                catalog.tools.len(),
                set.name,
                set.needs.len(),
                plain.any.recall[2],
            );
        }
    }
    Ok(())
}

fn missed(catalog: &Catalog) {
    let index = Index::new(&catalog.tools);
    let numbers = catalog.numbers();
    for set in &catalog.sets {
        for need in &set.needs {
            let hits = index.search(&need.text, 200);
            let found: Vec<usize> = hits.iter().map(|hit| numbers[&hit.tool.digest()]).collect();
            let rank = found.iter().position(|number| need.right.contains(number));
            if rank.is_none_or(|rank| rank >= FOUND_PER_NEED) {
                let right = &catalog.tools[need.exact];
                let words = index.ranking(&need.text, right).unwrap();
                let first: Vec<_> = found.iter().take(5).map(|one| &*catalog.names[*one]).collect();
                println!(
                    "{}\t{}\t{}\t{}\t{rank:?}\thas {}\tlacks {}\t{}",
                    catalog.name,
                    set.name,
                    need.text,
                    catalog.names[need.exact],
                    words.matched.join(" "),
                    words.missing.join(" "),
                    first.join(" ")
                );
            }
        }
    }
}

/// The figures on BFCL's requests of users, beside those of other searches.
fn of_users(catalog: &Catalog) -> String {
    let mut page = format!(
        "{} tools with {} names, {} requests.\n\n\
         | search | counted as right | R@1 | R@3 | R@5 | R@10 | nDCG@10 |\n\
         |---|---|---|---|---|---|---|\n",
        catalog.tools.len(),
        catalog.names.iter().collect::<HashSet<_>>().len(),
        catalog.sets[0].needs.len()
    );
    let rows = [
        ("`toolcrib-search`", catalog.search(Weights::CHOSEN, 1)),
        ("crate `bm25` over the rendered definitions", plain_bm25(catalog)),
        ("regular expression over the names", regex(catalog)),
    ];
    for (search, figures) in rows {
        let Figures { any, exact } = figures[0];
        for (right, Ranks { recall: [r1, r3, r5, r10], gain }) in
            [("a tool of this name", any), ("this tool", exact)]
        {
            page.push_str(&format!(
                "| {search} | {right} | {r1:.3} | {r3:.3} | {r5:.3} | {r10:.3} | {gain:.3} |\n"
            ));
        }
    }
    let (variants, exact) = two_searches(catalog);
    page.push_str(&format!(
        "\nIn view after two searches of `search_tools` with the request and its parts as needs, the \
         second for the next {FOUND_PER_NEED} of each list: a tool of this name {variants:.3}, this \
         tool {exact:.3}."
    ));
    page
}

/// The crate `bm25` over the same texts.
fn plain_bm25(catalog: &Catalog) -> Vec<Figures> {
    let documents = catalog.tools.iter().enumerate().map(|(number, tool)| Document {
        id: number as u32,
        contents: tool.rendering().to_owned(),
    });
    let engine: SearchEngine<u32, u32, Words> =
        SearchEngineBuilder::with_tokenizer_and_documents(Words, documents).build();
    catalog.measure(1, |need| {
        engine.search(need, DEPTH).iter().map(|hit| hit.document.id as usize).collect()
    })
}

/// A regular expression over the names: the words of the request as alternatives, the names with
/// the most matches first.
fn regex(catalog: &Catalog) -> Vec<Figures> {
    catalog.measure(1, |request| {
        let words: Vec<String> = request
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| word.len() > 3)
            .map(regex::escape)
            .collect();
        let pattern = RegexBuilder::new(&words.join("|")).case_insensitive(true).build();
        let Ok(pattern) = pattern else { return Vec::new() };
        if words.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<(usize, usize)> = (0..)
            .zip(&catalog.tools)
            .map(|(number, tool)| (pattern.find_iter(tool.name()).count(), number))
            .filter(|(matches, _)| *matches > 0)
            .collect();
        found.sort_by_key(|(matches, number)| (usize::MAX - matches, *number));
        found.truncate(DEPTH);
        found.into_iter().map(|(_, number)| number).collect()
    })
}

/// The shares of requests whose tool is in view after two searches, both for the whole request and
/// up to [`PARTS`] of its parts as separate needs. The second continues the lists of the first.
fn two_searches(catalog: &Catalog) -> (f64, f64) {
    let index = Index::new(&catalog.tools);
    let numbers = catalog.numbers();
    let (mut variants, mut exact) = (0_usize, 0_usize);
    let requests = &catalog.sets[0].needs;
    for request in requests {
        let needs = std::iter::once(&*request.text).chain(parts(&request.text));
        let hits = needs.flat_map(|need| index.search(need, 2 * FOUND_PER_NEED));
        let in_view: HashSet<usize> = hits.map(|hit| numbers[&hit.tool.digest()]).collect();
        exact += usize::from(in_view.contains(&request.exact));
        variants += usize::from(request.right.iter().any(|right| in_view.contains(right)));
    }
    let share = |count: usize| count as f64 / requests.len() as f64;
    (share(variants), share(exact))
}

/// Parts of a request, as a model that states each step would have them: sentences, else clauses.
fn parts(request: &str) -> Vec<&str> {
    let split = |text: &'_ str, at: &[&str]| -> Vec<(usize, usize)> {
        let mut ends = vec![0];
        for (position, _) in text.char_indices() {
            if at.iter().any(|mark| text[position..].starts_with(mark)) {
                ends.push(position);
            }
        }
        ends.push(text.len());
        ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    for marks in [&[". ", "? ", "! ", "\n", "; "][..], &[", ", " and ", " with ", " for ", " in "]]
    {
        let found: Vec<&str> = split(request, marks)
            .into_iter()
            .map(|(from, to)| request[from..to].trim())
            .filter(|part| part.split_whitespace().count() > 1)
            .take(PARTS)
            .collect();
        if found.len() > 1 {
            return found;
        }
    }
    Vec::new()
}

/// Words in lower case, as a plain search has them.
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    }
}
