//! Recall on BFCL's `live_multiple`: requests of users, each with the tool that answers it.
//!
//! `cargo xtask search-bench` runs it. With `--choose` it searches the weights instead.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program for developers: it reads files, prints, and may stop at an error"
)]

use std::{
    collections::{HashMap, HashSet},
    env,
    error::Error,
    fs,
    path::Path,
};

use bm25::{Document, SearchEngineBuilder, Tokenizer};
use regex::RegexBuilder;
use serde_json::Value;
use toolcrib_core::Tool;
use toolcrib_search::{Index, Weights};

/// The folder with BFCL's data.
const VARIABLE: &str = "TOOLCRIB_BFCL_DATA";
const FILE: &str = "BFCL_v4_live_multiple.json";

/// Ranks beyond this one count as not found.
const DEPTH: usize = 10;

/// Needs of one search, and tools that it lists for each.
const PARTS: usize = 4;
const FOUND_PER_NEED: usize = 5;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// All tools, and the requests with the number of the tool that answers each.
///
/// Functions with the same name and description are one tool: 956 of them.
struct Corpus {
    tools: Vec<Tool>,
    /// The name of each without its namespace, in lower case. Tools of one such name are variants
    /// that different users declared.
    names: Vec<String>,
    requests: Vec<(String, usize)>,
}

fn main() -> Outcome<()> {
    let folder = env::var(VARIABLE)
        .map_err(|_| format!("set {VARIABLE}: `cargo xtask search-bench` does"))?;
    let corpus = Corpus::read(Path::new(&folder))?;
    if env::args().any(|argument| argument == "--choose") {
        choose(&corpus);
        return Ok(());
    }
    println!("{}", corpus.report());
    Ok(())
}

impl Corpus {
    fn read(folder: &Path) -> Outcome<Self> {
        let (mut tools, mut names, mut requests) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers: HashMap<(Value, Value), usize> = HashMap::new();
        let answers = lines(&folder.join("possible_answer").join(FILE))?;
        for (entry, answer) in lines(&folder.join(FILE))?.iter().zip(&answers) {
            assert_eq!(entry["id"], answer["id"], "the files list the same requests in one order");
            let right = answer["ground_truth"][0].as_object().and_then(|calls| calls.keys().next());
            let mut of_request = HashMap::new();
            for function in entry["function"].as_array().into_iter().flatten() {
                let name = function["name"].as_str().unwrap_or_default();
                let key = (function["name"].clone(), function["description"].clone());
                let number = match numbers.get(&key) {
                    Some(number) => *number,
                    None => {
                        tools.push(tool(function)?);
                        names.push(name.rsplit('.').next().unwrap_or_default().to_lowercase());
                        numbers.insert(key, tools.len() - 1);
                        tools.len() - 1
                    }
                };
                of_request.insert(name.to_owned(), number);
            }
            let request: Vec<&str> = entry["question"][0]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|message| message["role"] == "user")
                .filter_map(|message| message["content"].as_str())
                .collect();
            if let Some(number) = right.and_then(|right| of_request.get(right)) {
                requests.push((request.join("\n"), *number));
            }
        }
        Ok(Self { tools, names, requests })
    }

    /// The figures of a search that returns numbers of tools, the best first.
    fn measure(&self, search: impl Fn(&str) -> Vec<usize>) -> Figures {
        let mut figures = Figures::default();
        for (request, right) in &self.requests {
            let found = search(request);
            let exact = found.iter().position(|number| number == right);
            let name = &self.names[*right];
            let variant = found.iter().position(|number| self.names[*number] == *name);
            figures.exact.count(exact);
            figures.variants.count(variant);
        }
        let all = self.requests.len() as f64;
        figures.exact.divide(all);
        figures.variants.divide(all);
        figures
    }

    fn own(&self, weights: Weights) -> Figures {
        let index = Index::with_weights(&self.tools, weights);
        let numbers: HashMap<_, _> =
            self.tools.iter().enumerate().map(|(number, tool)| (tool.digest(), number)).collect();
        self.measure(|request| {
            index.search(request, DEPTH).iter().map(|hit| numbers[&hit.tool.digest()]).collect()
        })
    }

    /// The crate `bm25` over the same texts.
    fn plain_bm25(&self) -> Figures {
        let documents = self.tools.iter().enumerate().map(|(number, tool)| Document {
            id: number as u32,
            contents: tool.rendering().to_owned(),
        });
        let builder =
            SearchEngineBuilder::<u32, u32, Words>::with_tokenizer_and_documents(Words, documents);
        let engine = builder.build();
        self.measure(|request| {
            engine.search(request, DEPTH).iter().map(|hit| hit.document.id as usize).collect()
        })
    }

    /// A regular expression over the names: the words of the request as alternatives, the names
    /// with the most matches first.
    fn regex(&self) -> Figures {
        self.measure(|request| {
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
                .zip(&self.tools)
                .map(|(number, tool)| (pattern.find_iter(tool.name()).count(), number))
                .filter(|(matches, _)| *matches > 0)
                .collect();
            found.sort_by_key(|(matches, number)| (usize::MAX - matches, *number));
            found.truncate(DEPTH);
            found.into_iter().map(|(_, number)| number).collect()
        })
    }

    fn report(&self) -> String {
        let mut page = format!(
            "{} tools with {} names, {} requests.\n\n\
             | search | counted as right | R@1 | R@3 | R@5 | R@10 | nDCG@10 |\n\
             |---|---|---|---|---|---|---|\n",
            self.tools.len(),
            self.names.iter().collect::<HashSet<_>>().len(),
            self.requests.len()
        );
        let rows = [
            ("`toolcrib-search`", self.own(Weights::CHOSEN)),
            ("crate `bm25` over the rendered definitions", self.plain_bm25()),
            ("regular expression over the names", self.regex()),
        ];
        for (search, figures) in rows {
            for (right, Ranks { recall: [r1, r3, r5, r10], gain }) in
                [("a tool of this name", figures.variants), ("this tool", figures.exact)]
            {
                page.push_str(&format!(
                    "| {search} | {right} | {r1:.3} | {r3:.3} | {r5:.3} | {r10:.3} | {gain:.3} |\n"
                ));
            }
        }
        let (variants, exact) = self.two_searches();
        page.push_str(&format!(
            "\nIn view after two searches of `search_tools` with the request and its parts as needs, the \
             second for the next {FOUND_PER_NEED} of each list: a tool of this name {variants:.3}, this \
             tool {exact:.3}.\n"
        ));
        page.trim_end().to_owned()
    }

    /// The shares of requests whose tool is in view after two searches, both for the whole request and
    /// up to [`PARTS`] of its parts as separate needs. The second continues the lists of the first.
    fn two_searches(&self) -> (f64, f64) {
        let index = Index::new(&self.tools);
        let numbers: HashMap<_, _> =
            self.tools.iter().enumerate().map(|(number, tool)| (tool.digest(), number)).collect();
        let (mut variants, mut exact) = (0_usize, 0_usize);
        for (request, right) in &self.requests {
            let needs = std::iter::once(request.as_str()).chain(parts(request));
            let hits = needs.flat_map(|need| index.search(need, 2 * FOUND_PER_NEED));
            let in_view: HashSet<usize> = hits.map(|hit| numbers[&hit.tool.digest()]).collect();
            exact += usize::from(in_view.contains(right));
            let is_variant = |number: &usize| self.names[*number] == self.names[*right];
            variants += usize::from(in_view.iter().any(is_variant));
        }
        let share = |count: usize| count as f64 / self.requests.len() as f64;
        (share(variants), share(exact))
    }
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

#[derive(Default, Clone, Copy)]
struct Figures {
    /// Tools of the same name count as right.
    variants: Ranks,
    exact: Ranks,
}

#[derive(Default, Clone, Copy)]
struct Ranks {
    /// At 1, 3, 5 and 10.
    recall: [f64; 4],
    /// nDCG@10 with the best right tool as the only relevant one.
    gain: f64,
}

impl Ranks {
    fn count(&mut self, position: Option<usize>) {
        let Some(position) = position else { return };
        for (recall, within) in self.recall.iter_mut().zip([1, 3, 5, 10]) {
            *recall += f64::from(u8::from(position < within));
        }
        self.gain += 1.0 / (position as f64 + 2.0).log2();
    }

    fn divide(&mut self, all: f64) {
        self.recall.iter_mut().for_each(|recall| *recall /= all);
        self.gain /= all;
    }
}

/// The number of weights that BFCL can choose.
const WEIGHTS: usize = 14;

/// What is maximized: recall at 5 of both kinds, and half as much the order within.
fn goal(figures: Figures) -> f64 {
    let Figures { variants, exact } = figures;
    variants.recall[2] + exact.recall[2] + 0.5 * (variants.gain + exact.gain)
}

/// Searches the weights: small random steps from the chosen ones, each kept if it improves the goal.
/// The steps are the same in each run.
fn choose(corpus: &Corpus) {
    const STEPS: usize = 600;
    let mut random = 1_u64;
    // Numerical Recipes' generator; the high bits are good enough for steps.
    let mut share = || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 40) as f32 / (1_u32 << 24) as f32
    };
    let mut best = (goal(corpus.own(Weights::CHOSEN)), Weights::CHOSEN);
    for _ in 0..STEPS {
        let mut weights = best.1;
        for _ in 0..1 + (share() * 3.0) as usize {
            let number = ((share() * WEIGHTS as f32) as usize).min(WEIGHTS - 1);
            let value = weight(&mut weights, number);
            *value = (*value + 0.02) * (0.5 + 1.5 * share());
            if DISCOUNTS.contains(&number) {
                *value = value.min(1.0);
            }
        }
        let reached = goal(corpus.own(weights));
        if reached > best.0 {
            best = (reached, weights);
            let Figures { variants, exact } = corpus.own(weights);
            eprintln!("{reached:.4} {:.3} {:.3} {weights:?}", variants.recall[2], exact.recall[2]);
        }
    }
    println!("{:#?}", best.1);
}

/// The weights between 0 and 1.
const DISCOUNTS: std::ops::Range<usize> = 5..10;

/// The fields that BFCL has.
const NOT_SERVER: [usize; 5] = [0, 2, 3, 4, 5];

fn weight(weights: &mut Weights, number: usize) -> &mut f32 {
    match number {
        0..5 => &mut weights.fields[NOT_SERVER[number]],
        5..10 => &mut weights.discounts[NOT_SERVER[number - 5]],
        10 => &mut weights.saturation,
        11 => &mut weights.trigrams,
        12 => &mut weights.coverage,
        _ => &mut weights.rarity,
    }
}

fn lines(file: &Path) -> Outcome<Vec<Value>> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// A function of BFCL as a tool. Its types have Python's names.
fn tool(function: &Value) -> Outcome<Tool> {
    let name: String = function["name"]
        .as_str()
        .unwrap_or_default()
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
        .take(64)
        .collect();
    let mut schema = function["parameters"].clone();
    with_json_types(&mut schema);
    let description = function["description"].as_str().unwrap_or_default();
    let tool = Tool::builder(name).description(description).input_schema(schema);
    Ok(tool.handler(|_: Value, _| async { "" })?)
}

fn with_json_types(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    let python = schema.get("type").and_then(Value::as_str).map(|kind| match kind {
        "dict" => "object",
        "float" => "number",
        "tuple" => "array",
        "any" => "string",
        other => other,
    });
    if let Some(kind) = python.map(str::to_owned) {
        schema.insert("type".to_owned(), kind.into());
    }
    for (_, part) in schema.iter_mut() {
        match part {
            Value::Object(parts) if !parts.contains_key("type") => {
                parts.values_mut().for_each(with_json_types);
            }
            part => with_json_types(part),
        }
    }
}
