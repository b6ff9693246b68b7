//! The texts of a tool that a search reads, and what they weigh.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::ToolDefinition;

use crate::{
    concepts::concepts,
    weights::{USUAL_LENGTHS, Weights},
    words::{joined, terms, trigrams},
};

/// A text of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The name, without the prefix of its server.
    Name,
    /// The MCP server and the toolset.
    Server,
    /// The first sentence of the description.
    FirstSentence,
    /// The rest of the description.
    Description,
    /// The names of the parameters.
    ParameterNames,
    /// The descriptions and enumerated values of the parameters.
    ParameterTexts,
}

/// Words of one field that are read. A server's texts are not bounded otherwise.
const MOST_WORDS: usize = 1_000;

/// Parameters of one tool that are read, nested ones included.
const MOST_PARAMETERS: usize = 200;

/// Different terms of one tool that are indexed. With 8 bytes for each, 10,000 tools of this size
/// take 40 MB; a usual tool has 60 to 100.
const MOST_TERMS: usize = 512;

const PARAMETER_TEXTS: usize = Field::ParameterTexts as usize;

/// An entry of the index: a word, a [concept](concepts), a name's trigram, or a whole name. The kinds
/// never compare equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Term {
    WholeName(Arc<str>),
    Word(Arc<str>),
    Concept(u16),
    Trigram([char; 3]),
}

impl Term {
    pub(crate) fn is_word(&self) -> bool {
        matches!(self, Self::Word(_))
    }
}

/// The different terms of a tool, each with its share of a score.
pub(crate) fn impacts(tool: &ToolDefinition, weights: &Weights) -> Vec<(Term, f32)> {
    let name = bare_name(tool);
    let mut all = of_words(&texts(tool, name), weights);
    let whole = joined(name);
    let mut parts = trigrams(&whole);
    parts.sort_unstable();
    parts.dedup();
    all.extend(parts.into_iter().map(|three| (Term::Trigram(three), weights.trigrams)));
    let mut names = vec![joined(tool.name()), whole];
    names.dedup();
    all.extend(names.into_iter().map(|name| (Term::WholeName(name.into()), weights.whole_name)));
    if all.len() > MOST_TERMS {
        all.sort_by(|(one, high), (other, low)| low.total_cmp(high).then_with(|| one.cmp(other)));
        all.truncate(MOST_TERMS);
    }
    all
}

/// The words of the texts, and their concepts.
fn of_words(texts: &[String; 6], weights: &Weights) -> Vec<(Term, f32)> {
    let (mut words, mut shares) = (Vec::new(), weights.fields);
    for (field, (text, share)) in texts.iter().zip(&mut shares).enumerate() {
        let before = words.len();
        words.extend(terms(text).take(MOST_WORDS).map(|term| (term, field)));
        let usual = USUAL_LENGTHS.get(field).copied().unwrap_or(1.0);
        let length = (words.len() - before) as f32 / usual;
        *share /= 1.0 - weights.discount + weights.discount * length;
    }
    words.sort_unstable();
    let saturated = |weight: f32| weight / (weights.saturation + weight);
    let share = |field: usize| shares.get(field).copied().unwrap_or_default();
    let mut all: Vec<(Term, f32)> = Vec::with_capacity(words.len());
    let mut meant: Vec<(u16, f32)> = Vec::new();
    for same in words.chunk_by(|(one, _), (other, _)| one == other) {
        let word = same.first().map(|(word, _)| word.as_str()).unwrap_or_default();
        let fields = same.iter().map(|(_, field)| *field);
        let weight: f32 = fields.clone().map(share).sum();
        all.push((Term::Word(word.into()), saturated(weight)));
        // The texts of parameters mention too much that the tool does not do.
        let weight: f32 = fields.filter(|field| *field != PARAMETER_TEXTS).map(share).sum();
        if weight > 0.0 {
            meant.extend(concepts(word).iter().map(|concept| (*concept, weight)));
        }
    }
    meant.sort_unstable_by_key(|(concept, _)| *concept);
    for same in meant.chunk_by(|(one, _), (other, _)| one == other) {
        let weight = same.iter().map(|(_, weight)| weight).sum();
        let concept = same.first().map(|(concept, _)| *concept).unwrap_or_default();
        all.push((Term::Concept(concept), weights.synonyms * saturated(weight)));
    }
    all
}

/// The name without the server's prefix, which all tools of the server have.
pub(crate) fn bare_name(tool: &ToolDefinition) -> &str {
    let name = tool.name().as_str();
    let prefix = tool.mcp_server().map(|server| format!("mcp__{server}__"));
    prefix.and_then(|prefix| name.strip_prefix(&*prefix)).unwrap_or(name)
}

/// The first sentence of a description: up to a period and a space, or a line's end.
pub fn first_sentence(text: &str) -> &str {
    let end = text.find('\n').into_iter().chain(text.find(". ")).min();
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The texts in the order of [`Field`].
fn texts(tool: &ToolDefinition, name: &str) -> [String; 6] {
    let first = first_sentence(tool.description());
    let rest = tool.description().get(first.len()..).unwrap_or_default();
    let server = [tool.mcp_server(), tool.toolset()].into_iter().flatten();
    let mut parameters = Parameters::default();
    parameters.read(tool.input_schema());
    [
        name.to_owned(),
        server.collect::<Vec<_>>().join(" "),
        first.to_owned(),
        rest.to_owned(),
        parameters.names,
        parameters.texts,
    ]
}

/// The texts of a schema.
#[derive(Default)]
struct Parameters {
    names: String,
    texts: String,
    count: usize,
}

impl Parameters {
    /// Reads a schema. Its depth is bounded: a tool's schema was checked.
    fn read(&mut self, schema: &Value) {
        let Some(schema) = schema.as_object() else { return };
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, parameter) in properties {
                if self.count == MOST_PARAMETERS {
                    return;
                }
                self.count += 1;
                push(&mut self.names, name);
                for key in ["title", "description"] {
                    push(&mut self.texts, parameter.get(key).and_then(Value::as_str).unwrap_or(""));
                }
                let values = parameter.get("enum").and_then(Value::as_array);
                for value in
                    values.into_iter().flatten().filter_map(Value::as_str).take(MOST_PARAMETERS)
                {
                    push(&mut self.texts, value);
                }
                self.read(parameter);
            }
        }
        for key in ["items", "additionalProperties"] {
            self.read(schema.get(key).unwrap_or(&Value::Null));
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            let parts = schema.get(key).and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|part| self.read(part));
        }
    }
}

fn push(texts: &mut String, text: &str) {
    texts.push_str(text);
    texts.push('\n');
}
