//! Templates in a rule's answer.

use minijinja::{
    Environment, Error, ErrorKind, UndefinedBehavior,
    syntax::SyntaxConfig,
    value::{Serde, Value, ValueKind},
};
use serde_json::Value as Json;
use toolcrib_config::suggest;

use super::rule_input::RuleInput;

/// Maximum number of steps of one template. A loop over a result of some hundred rows takes a few
/// thousand; an infinite loop takes this many in milliseconds.
const STEPS: u64 = 50_000;

/// The variables of a template, beside captures. A capture must not hide one.
pub(super) const VARIABLES: [&str; 6] =
    ["user", "results", "result_texts", "errors", "error", "error_tool"];

/// The named groups of the rule's `user` patterns that participated in the match.
pub(super) type Captures = Vec<(String, String)>;

/// A checked template. It is compiled again for each rendering, which takes microseconds and keeps
/// a rule free of borrowed parts.
#[derive(Debug)]
pub(super) struct Template {
    /// Its key in the rule, for messages: `calls[0].args.order_id`.
    field: String,
    /// The whole template, or only the expression if the value's type is kept.
    source: String,
    keeps_type: bool,
}

/// A problem in a template, and its fix.
pub(super) struct TemplateProblem {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Checks templates when a script is loaded and renders them when it answers.
pub(super) struct Templates {
    environment: Environment<'static>,
}

impl Templates {
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(STEPS));
        // Without it an error does not name the undefined value.
        environment.set_debug(true);
        environment.set_syntax(
            SyntaxConfig::builder()
                .keep_trailing_newline(true)
                .trim_blocks(true)
                .lstrip_blocks(true)
                .build()
                .unwrap_or_default(),
        );
        environment.add_filter("money", money);
        Self { environment }
    }

    /// A template that renders to text. `captures` are the names that it may use beside
    /// [`VARIABLES`]; any name is valid when they are not known.
    pub(super) fn text(
        &self,
        field: &str,
        source: &str,
        captures: Option<&[String]>,
    ) -> Result<Template, TemplateProblem> {
        let compiled =
            self.environment.template_from_str(source).map_err(|error| TemplateProblem {
                message: format!("`{field}` is not a template: {}", reason(&error)),
                help: None,
            })?;
        self.check_names(field, compiled.undeclared_variables(false), captures)?;
        Ok(Template { field: field.to_owned(), source: source.to_owned(), keeps_type: false })
    }

    /// A template that keeps its value's type when it is exactly one `{{ expression }}`, and
    /// otherwise renders to text.
    pub(super) fn value(
        &self,
        field: &str,
        source: &str,
        captures: Option<&[String]>,
    ) -> Result<Template, TemplateProblem> {
        let lone = lone_expression(source).and_then(|expression| {
            let compiled = self.environment.compile_expression_owned(expression.to_owned());
            Some((expression, compiled.ok()?))
        });
        let Some((expression, compiled)) = lone else {
            return self.text(field, source, captures);
        };
        self.check_names(field, compiled.undeclared_variables(false), captures)?;
        Ok(Template { field: field.to_owned(), source: expression.to_owned(), keeps_type: true })
    }

    fn check_names(
        &self,
        field: &str,
        used: impl IntoIterator<Item = String>,
        captures: Option<&[String]>,
    ) -> Result<(), TemplateProblem> {
        let Some(captures) = captures else {
            return Ok(());
        };
        let is_global =
            |name: &String| self.environment.globals().any(|(global, _)| global == name);
        let known = || captures.iter().map(String::as_str).chain(VARIABLES);
        let unknown = used
            .into_iter()
            .filter(|name| !known().any(|known| known == name) && !is_global(name))
            // The names are unordered; the message must not depend on that.
            .min();
        let Some(unknown) = unknown else {
            return Ok(());
        };
        Err(TemplateProblem {
            message: format!("`{field}` uses `{unknown}`, which is not defined"),
            help: Some(suggest::help(&unknown, "variables of this rule", known())),
        })
    }
}

/// The variables for the templates of one answer.
pub(super) struct Scope<'t> {
    templates: &'t Templates,
    variables: Value,
}

impl<'t> Scope<'t> {
    pub(super) fn new(
        templates: &'t Templates,
        captures: &Captures,
        input: &RuleInput<'_>,
    ) -> Self {
        let results = || input.results.iter();
        let captures = captures.iter().map(|(name, text)| (name.as_str(), Value::from(text)));
        let error = input.first_error();
        let error = error.into_iter().flat_map(|(tool, result)| {
            [("error", Value::from(&*result.text)), ("error_tool", Value::from(tool))]
        });
        let variables = [
            ("user", Value::from(input.user)),
            (
                "results",
                Value::from_pairs(results().map(|(t, r)| (*t, Value::from(Serde(&r.data))))),
            ),
            ("result_texts", Value::from_pairs(results().map(|(t, r)| (*t, r.text.as_str())))),
            ("errors", Value::from_pairs(results().map(|(t, r)| (*t, r.is_error)))),
        ];
        Self { templates, variables: Value::from_pairs(captures.chain(variables).chain(error)) }
    }

    /// Renders to text.
    pub(super) fn text(&self, template: &Template) -> Result<String, String> {
        let environment = &self.templates.environment;
        environment
            .render_str(&template.source, self.variables.clone())
            .map_err(|error| failure(template, &error))
    }

    /// Renders to a value: of the expression's type if the template is one expression, otherwise
    /// text.
    pub(super) fn value(&self, template: &Template) -> Result<Json, String> {
        if !template.keeps_type {
            return self.text(template).map(Json::String);
        }
        let environment = &self.templates.environment;
        environment
            .compile_expression_owned(template.source.clone())
            .and_then(|expression| expression.eval(self.variables.clone()))
            .and_then(|value| json(&value))
            .map_err(|error| failure(template, &error))
    }
}

fn failure(template: &Template, error: &Error) -> String {
    format!("`{}`: {}", template.field, reason(error))
}

fn reason(error: &Error) -> String {
    let reason = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => format!("the template takes more than {STEPS} steps"),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    };
    match error.line() {
        Some(line) if line > 1 => format!("{reason} (line {line} of the template)"),
        _ => reason,
    }
}

/// The expression of a template that is exactly one `{{ expression }}`. With more than one pair of
/// braces in the source, the rest may not be an expression at all.
fn lone_expression(source: &str) -> Option<&str> {
    let inside = source.strip_prefix("{{")?.strip_suffix("}}")?;
    // `{{-` and `-}}` mark whitespace, they are not signs.
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
    Some(inside.strip_suffix(['-', '+']).unwrap_or(inside))
}

/// A template's value in JSON. Unlike plain serialization, which makes them null, it refuses
/// undefined values and non-finite numbers, at any depth.
fn json(value: &Value) -> Result<Json, Error> {
    match value.kind() {
        ValueKind::Undefined => {
            Err(Error::new(ErrorKind::UndefinedError, "the value is undefined"))
        }
        ValueKind::Seq | ValueKind::Iterable => value.try_iter()?.map(|item| json(&item)).collect(),
        ValueKind::Map => value
            .try_iter()?
            .map(|key| Ok((key.to_string(), json(&value.get_item(&key)?)?)))
            .collect(),
        kind => match serde_json::to_value(value) {
            Ok(Json::Null) if kind == ValueKind::Number => {
                Err(Error::new(ErrorKind::BadSerialization, "the number is not finite"))
            }
            Ok(value) => Ok(value),
            Err(error) => Err(Error::new(ErrorKind::BadSerialization, error.to_string())),
        },
    }
}

/// Cents as an amount: 2500 is `25.00`, -5 is `-0.05`.
fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    let cents = cents.unsigned_abs();
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::{lone_expression, money};

    #[test]
    fn cents_become_an_amount_with_two_places() {
        let amounts = [2500, 5, 0, -5, -2550, i64::MIN].map(money);
        assert_eq!(amounts, ["25.00", "0.05", "0.00", "-0.05", "-25.50", "-92233720368547758.08"]);
    }

    #[test]
    fn a_mark_for_white_space_is_not_part_of_the_expression() {
        assert_eq!(lone_expression("{{ a }}"), Some(" a "));
        assert_eq!(lone_expression("{{- a -}}"), Some(" a "));
        assert_eq!(lone_expression("{{ -1 }}"), Some(" -1 "));
        assert_eq!(lone_expression("x {{ a }}"), None);
        assert_eq!(lone_expression("{{}"), None);
    }
}
