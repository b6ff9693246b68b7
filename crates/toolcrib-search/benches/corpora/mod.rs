//! Catalogs of tools with sets of needs, each need with the tools that answer it.

use std::{
    collections::{HashMap, hash_map::Entry},
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use toolcrib_core::Tool;
use toolcrib_search::{Index, Weights};

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The folder with BFCL's data.
const BFCL: &str = "TOOLCRIB_BFCL_DATA";

/// The catalog of BFCL's functions that a model made for its requests.
const MADE: &str = "BFCL, made";

/// Ranks beyond this one count as not found.
pub const DEPTH: usize = 10;

/// Tools, and the sets of needs that were written for them.
pub struct Catalog {
    pub name: &'static str,
    pub tools: Vec<Tool>,
    /// The names by which needs refer to the tools.
    pub names: Vec<String>,
    pub sets: Vec<Set>,
}

/// Needs of one kind.
pub struct Set {
    pub name: &'static str,
    pub needs: Vec<Need>,
}

/// A need, with the numbers of the tools that answer it.
pub struct Need {
    pub text: String,
    pub right: Vec<usize>,
    /// The one that its author meant.
    pub exact: usize,
}

/// Needs that were written after the weights and the synonyms were chosen, for a
/// catalog of [`all`]: nothing may be chosen on them.
pub fn add_fresh(catalogs: &mut [Catalog]) -> Outcome<()> {
    let sets = ["people, unseen", "planners, unseen"];
    if let Some(catalog) = catalogs.iter_mut().find(|catalog| catalog.name == MADE) {
        let more = read_sets("fresh.tsv", &sets, &catalog.names)?;
        catalog.sets.extend(more);
    }
    Ok(())
}

/// All catalogs.
pub fn all() -> Outcome<Vec<Catalog>> {
    let folder =
        std::env::var(BFCL).map_err(|_| format!("set {BFCL}: `cargo xtask search-bench` does"))?;
    let folder = Path::new(&folder);
    let mut five_hundred = five_hundred()?;
    let on_call = read_sets("needs.tsv", &["engineers on call"], &five_hundred.names)?;
    let views = ["people", "planners", "keywords", "long requests"];
    five_hundred.sets = read_sets("views.tsv", &views, &five_hundred.names)?;
    five_hundred.sets.extend(on_call);
    let mut domains = domains(&folder.join("multi_turn_func_doc"))?;
    domains.sets = read_sets("domains.tsv", &["people", "planners", "keywords"], &domains.names)?;
    Ok(vec![
        bfcl(folder, "BFCL, of users", "users", &["live_multiple"])?,
        bfcl(folder, MADE, "made requests", &["simple_python", "multiple"])?,
        five_hundred,
        domains,
    ])
}

impl Catalog {
    /// The numbers of the tools that an index of these weights finds, for each need of each set.
    pub fn search(&self, weights: Weights, skip: usize) -> Vec<Figures> {
        let index = Index::with_weights(&self.tools, weights);
        let numbers = self.numbers();
        self.measure(skip, |need| {
            index.search(need, DEPTH).iter().map(|hit| numbers[&hit.tool.digest()]).collect()
        })
    }

    /// The number of each tool by its digest.
    pub fn numbers(&self) -> HashMap<toolcrib_core::Digest, usize> {
        self.tools.iter().enumerate().map(|(number, tool)| (tool.digest(), number)).collect()
    }

    /// The figures of each set for a search that returns numbers of tools, the best first. Of each
    /// set, every `step`th need is measured.
    pub fn measure(&self, step: usize, search: impl Fn(&str) -> Vec<usize>) -> Vec<Figures> {
        let of_set = |set: &Set| {
            let mut figures = Figures::default();
            for need in set.needs.iter().step_by(step) {
                let found = search(&need.text);
                figures.exact.count(found.iter().position(|number| *number == need.exact));
                figures.any.count(found.iter().position(|number| need.right.contains(number)));
            }
            let all = set.needs.len().div_ceil(step) as f64;
            figures.any.divide(all);
            figures.exact.divide(all);
            figures
        };
        self.sets.iter().map(of_set).collect()
    }
}

#[derive(Default, Clone, Copy)]
pub struct Figures {
    /// All right tools count.
    pub any: Ranks,
    /// Only the meant one counts.
    pub exact: Ranks,
}

#[derive(Default, Clone, Copy)]
pub struct Ranks {
    /// At 1, 3, 5 and 10.
    pub recall: [f64; 4],
    /// nDCG@10 with the best right tool as the only relevant one.
    pub gain: f64,
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

/// Files of BFCL: requests, each with the functions of its author and the right one.
///
/// Functions with the same name and description are one tool. Tools whose names differ only in
/// their namespace or case are variants that different authors declared: each of them is right.
fn bfcl(folder: &Path, name: &'static str, set: &'static str, files: &[&str]) -> Outcome<Catalog> {
    let mut catalog = Catalog { name, tools: Vec::new(), names: Vec::new(), sets: Vec::new() };
    let mut numbers: HashMap<(Value, Value), usize> = HashMap::new();
    let mut requests = Vec::new();
    for file in files {
        let file = format!("BFCL_v4_{file}.json");
        let answers = lines(&folder.join("possible_answer").join(&file))?;
        for (entry, answer) in lines(&folder.join(&file))?.iter().zip(&answers) {
            assert_eq!(entry["id"], answer["id"], "the files list the same requests in one order");
            let right = answer["ground_truth"][0].as_object().and_then(|calls| calls.keys().next());
            let mut of_request = HashMap::new();
            for function in entry["function"].as_array().into_iter().flatten() {
                let name = function["name"].as_str().unwrap_or_default();
                let key = (function["name"].clone(), function["description"].clone());
                let number = match numbers.entry(key) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        catalog.tools.push(tool(function, None)?);
                        let name = name.rsplit('.').next().unwrap_or_default();
                        catalog.names.push(name.to_lowercase());
                        *new.insert(catalog.tools.len() - 1)
                    }
                };
                of_request.insert(name.to_owned(), number);
            }
            if let Some(number) = right.and_then(|right| of_request.get(right)) {
                requests.push((request(entry), *number));
            }
        }
    }
    let needs = requests.into_iter().map(|(text, exact)| {
        let is_variant = |number: &usize| catalog.names[*number] == catalog.names[exact];
        Need { text, right: (0..catalog.names.len()).filter(is_variant).collect(), exact }
    });
    let set = Set { name: set, needs: needs.collect() };
    catalog.sets.push(set);
    Ok(catalog)
}

/// What the user of an entry says.
fn request(entry: &Value) -> String {
    let messages = entry["question"][0].as_array().into_iter().flatten();
    let said = messages.filter(|message| message["role"] == "user");
    said.filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The definitions of `examples/five-hundred`.
fn five_hundred() -> Outcome<Catalog> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/five-hundred/servers");
    servers("ten published servers", &folder, |text| {
        let listed: Value = serde_json::from_str(text)?;
        Ok(listed["tools"].as_array().cloned().unwrap_or_default())
    })
}

/// BFCL's services with several tools each: files, sums, messages, posts, tickets, stocks, travel, a
/// car, a memory.
fn domains(folder: &Path) -> Outcome<Catalog> {
    servers("services of BFCL", folder, |text| {
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    })
}

/// A catalog with a server for each file of a folder.
fn servers(
    name: &'static str,
    folder: &Path,
    read: impl Fn(&str) -> Outcome<Vec<Value>>,
) -> Outcome<Catalog> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = entries.collect::<Result<Vec<PathBuf>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|kind| kind == "json"));
    files.sort();
    let mut catalog = Catalog { name, tools: Vec::new(), names: Vec::new(), sets: Vec::new() };
    for file in files {
        let server = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        for definition in read(&fs::read_to_string(&file)?)? {
            let bare = definition["name"].as_str().unwrap_or_default();
            catalog.names.push(format!("{server}/{bare}"));
            catalog.tools.push(tool(&definition, Some(server))?);
        }
    }
    Ok(catalog)
}

/// The sets of a file. Its columns: the right tools, then the same need for each set.
fn read_sets(file: &str, sets: &[&'static str], names: &[String]) -> Outcome<Vec<Set>> {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(file))?;
    let mut all: Vec<Set> = sets.iter().map(|name| Set { name, needs: Vec::new() }).collect();
    for line in text.lines() {
        let mut columns = line.split('\t');
        let mut right = Vec::new();
        for wanted in columns.next().unwrap_or_default().split('|') {
            let before = right.len();
            let numbered = names.iter().enumerate().filter(|(_, name)| *name == wanted);
            right.extend(numbered.map(|(number, _)| number));
            if right.len() == before {
                return Err(format!("{file}: no tool is called {wanted}").into());
            }
        }
        for (set, text) in all.iter_mut().zip(columns) {
            set.needs.push(Need { text: text.to_owned(), exact: right[0], right: right.clone() });
        }
    }
    Ok(all)
}

fn lines(file: &Path) -> Outcome<Vec<Value>> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// A definition as a tool. Types of BFCL have Python's names.
fn tool(definition: &Value, server: Option<&str>) -> Outcome<Tool> {
    let is_permitted = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let name: String = definition["name"]
        .as_str()
        .unwrap_or_default()
        .chars()
        .map(|letter| if is_permitted(letter) { letter } else { '_' })
        .collect();
    let name = server.map_or(name.clone(), |server| format!("mcp__{server}__{name}"));
    let mut builder = Tool::builder(name.chars().take(64).collect::<String>());
    if let Some(server) = server {
        builder = builder.mcp_server(server);
    }
    let schema = [&definition["inputSchema"], &definition["parameters"]];
    let mut schema = schema.into_iter().find(|schema| schema.is_object()).cloned();
    schema.iter_mut().for_each(with_json_types);
    let builder = builder
        .description(definition["description"].as_str().unwrap_or_default())
        .input_schema(schema.unwrap_or_else(|| json!({ "type": "object" })));
    Ok(builder.handler(|_: Value, _| async { "" })?)
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
