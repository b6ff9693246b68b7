//! A catalog, indexed for the rules.

use std::fmt;

use serde_json::{Value, json};
use toolcrib_core::__internal::nests_too_deep;

use crate::{
    parameters::{Parameter, parameters},
    text::segment,
    tool::{LintTool, SourceFacts},
};

/// Estimates the tokens of a text: a quarter of its characters, which is typical for English prose
/// and JSON. Text in other scripts, and long identifiers, have more. No tokenizer is used, because
/// each model has a different one and most are not public.
pub fn estimated_tokens(chars: usize) -> usize {
    chars.div_ceil(4)
}

/// All tools and sources, as the input of rules.
#[derive(Debug)]
pub struct LintCatalog<'a> {
    tools: Vec<Subject<'a>>,
    sources: &'a [SourceFacts],
    max_tokens: usize,
}

impl<'a> LintCatalog<'a> {
    pub(crate) fn new(
        tools: &'a [LintTool],
        sources: &'a [SourceFacts],
        max_tokens: usize,
    ) -> Self {
        let tools = tools.iter().enumerate().map(|(at, tool)| Subject::new(at, tool)).collect();
        Self { tools, sources, max_tokens }
    }

    /// The tools, in order.
    pub fn tools(&self) -> &[Subject<'a>] {
        &self.tools
    }

    /// The known facts about the sources.
    pub fn sources(&self) -> &[SourceFacts] {
        self.sources
    }

    /// The maximum number of tokens of all tools.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }
}

/// One tool, as the input of rules.
#[derive(Debug)]
pub struct Subject<'a> {
    position: usize,
    tool: &'a LintTool,
    too_deep: bool,
    chars: usize,
    parameters: Vec<Parameter<'a>>,
}

impl<'a> Subject<'a> {
    fn new(position: usize, tool: &'a LintTool) -> Self {
        let too_deep = tool.input_schema.as_ref().is_some_and(nests_too_deep);
        let schema = tool.input_schema.as_ref().filter(|_| !too_deep);
        let LintTool { name, description, .. } = tool;
        let read = json!({ "name": name, "description": description, "input_schema": schema });
        Self {
            position,
            tool,
            too_deep,
            chars: read.to_string().chars().count(),
            parameters: schema.map(parameters).unwrap_or_default(),
        }
    }

    /// Its index, from 0.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The tool that is checked.
    pub fn tool(&self) -> &'a LintTool {
        self.tool
    }

    /// Its name in backticks, shortened, with invisible characters as `\u{…}`.
    pub fn shown(&self) -> String {
        crate::text::name(&self.tool.name)
    }

    /// The schema of arguments, if it exists and can be traversed.
    pub fn schema(&self) -> Option<&'a Value> {
        self.tool.input_schema.as_ref().filter(|_| !self.too_deep)
    }

    /// Whether the schema of arguments nests too deep to be traversed.
    pub fn is_too_deep(&self) -> bool {
        self.too_deep
    }

    /// The parameters that the schema describes, including nested ones.
    pub fn parameters(&self) -> &[Parameter<'a>] {
        &self.parameters
    }

    /// Name, description and schema of arguments as compact JSON, in characters.
    pub fn chars(&self) -> usize {
        self.chars
    }

    /// The same in tokens, [estimated](estimated_tokens).
    pub fn tokens(&self) -> usize {
        estimated_tokens(self.chars)
    }

    /// Visits all texts of the tool: name, title, description, and every key and text of both
    /// schemas. Schemas that nest too deep to be traversed are skipped.
    pub fn each_text(&self, mut visit: impl FnMut(&TextPosition<'_>, &'a str)) {
        let tool = self.tool;
        let mut of = |part, text| visit(&TextPosition { part, inside: &[] }, text);
        of("name", &*tool.name);
        if let Some(title) = &tool.title {
            of("title", title);
        }
        of("description", &tool.description);
        let output = tool.output_schema.as_ref().filter(|schema| !nests_too_deep(schema));
        for (part, schema) in [("input_schema", self.schema()), ("output_schema", output)] {
            if let Some(schema) = schema {
                walk(part, schema, &mut Vec::new(), &mut visit);
            }
        }
    }
}

/// The position of a text in a tool. Displayed as `description`,
/// `input_schema/properties/order_id`.
#[derive(Debug, Clone, Copy)]
pub struct TextPosition<'p> {
    part: &'static str,
    inside: &'p [Step<'p>],
}

impl TextPosition<'_> {
    /// The part of the tool: `name`, `title`, `description`, `input_schema`, `output_schema`.
    pub fn part(&self) -> &'static str {
        self.part
    }
}

impl fmt::Display for TextPosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.part)?;
        self.inside.iter().try_for_each(|step| match step {
            Step::Key(key) => write!(f, "/{}", segment(key)),
            Step::Item(at) => write!(f, "/{at}"),
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Key(&'p str),
    Item(usize),
}

/// Visits the keys and texts of a value, in order. Its nesting is limited enough to be traversed.
/// The path is only assembled for a match.
fn walk<'a>(
    part: &'static str,
    value: &'a Value,
    way: &mut Vec<Step<'a>>,
    visit: &mut impl FnMut(&TextPosition<'_>, &'a str),
) {
    match value {
        Value::String(text) => visit(&TextPosition { part, inside: way }, text),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                way.push(Step::Item(at));
                walk(part, item, way, visit);
                way.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                visit(&TextPosition { part, inside: way }, key);
                way.push(Step::Key(key));
                walk(part, item, way, visit);
                way.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
