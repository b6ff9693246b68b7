//! JSONPath (RFC 9535), as far as it is worth its time.
//!
//! An evaluation cannot be stopped, and some short paths take a time that grows with a power of the
//! document. So what a path may cost is worked out before, and one that may cost too much is refused.

use serde_json::Value;
use serde_json_path::JsonPath;
use toolcrib_core::ToolError;

/// How long a path may be, in characters.
pub(super) const LONGEST_PATH: usize = 500;

/// How deep its brackets may nest: the parser goes down with them.
const DEEPEST_PATH: usize = 8;

/// How many values may be looked at.
const MOST_STEPS: u128 = 20_000_000;

/// What a regular expression costs, which is compiled for each value that it is held against.
const REGEX_COST: u128 = 200;

/// A path that can be evaluated.
#[derive(Debug)]
pub(super) struct Path {
    path: JsonPath,
    cost: Cost,
}

/// What makes a path look at a value more than once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Cost {
    /// `..`, inside and outside of filters.
    descents: u32,
    /// `$` in filters: they begin at the top again.
    roots: u32,
    /// Filters.
    filters: u32,
    /// Selectors beside others.
    commas: u32,
    /// Whether there is a regular expression.
    regex: bool,
}

impl Path {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let invalid = |why: String| {
            ToolError::input_invalid(format!("`path` is no JSONPath that can be used: {why}"))
        };
        if text.chars().nth(LONGEST_PATH).is_some() {
            return Err(invalid(format!("it has more than {LONGEST_PATH} characters")));
        }
        let cost = Cost::of(text).ok_or_else(|| {
            invalid(format!("its brackets nest deeper than {DEEPEST_PATH} levels"))
        })?;
        let path = JsonPath::parse(text).map_err(|error| {
            invalid(format!("{} (at character {})", error.message(), error.position() + 1))
        })?;
        Ok(Self { path, cost })
    }

    /// What it finds, in order.
    pub(super) fn query<'v>(&self, document: &'v Value) -> Result<Vec<&'v Value>, ToolError> {
        if self.cost.on(document) > MOST_STEPS {
            return Err(ToolError::input_invalid(
                "`path` may take too long on this much JSON: use fewer `..`, no `$` and no \
                 match() or search() in filters, or look at a part only, with `at`",
            ));
        }
        Ok(self.path.query(document).all())
    }
}

impl Cost {
    /// Reads it off a path; `None` when that nests too deep.
    fn of(path: &str) -> Option<Self> {
        let mut cost = Self::default();
        let mut quote = None;
        let (mut depth, mut before) = (0_usize, ' ');
        let mut is_escaped = false;
        for c in path.chars() {
            if let Some(open) = quote {
                match c {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = true,
                    _ if c == open => quote = None,
                    _ => {}
                }
                continue;
            }
            match c {
                '\'' | '"' => quote = Some(c),
                '[' | '(' => depth += 1,
                ']' | ')' => depth = depth.saturating_sub(1),
                '.' if before == '.' => cost.descents += 1,
                '?' => cost.filters += 1,
                '$' if depth > 0 => cost.roots += 1,
                ',' => cost.commas += 1,
                _ => {}
            }
            if depth > DEEPEST_PATH {
                return None;
            }
            before = c;
        }
        cost.regex = path.contains("match") || path.contains("search");
        Some(cost)
    }

    /// How many values may be looked at in this document, at most.
    fn on(self, document: &Value) -> u128 {
        let (values, depth) = size(document);
        let power = |base: u128, exponent: u32| base.saturating_pow(exponent);
        // A value is reached by one way, unless `..` reaches it from each of those above it.
        let descents = power(depth, self.descents.saturating_sub(1));
        let filters = power(depth, self.filters.saturating_sub(1));
        let regex = if self.regex { REGEX_COST } else { 1 };
        [descents, filters, power(values, self.roots), power(2, self.commas), regex]
            .into_iter()
            .fold(values, u128::saturating_mul)
    }
}

/// How many values there are, and how deep they nest, from 1.
fn size(document: &Value) -> (u128, u128) {
    let (mut count, mut deepest) = (0, 1);
    let mut ahead = vec![(document, 1)];
    while let Some((value, depth)) = ahead.pop() {
        count += 1;
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => ahead.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => ahead.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    (count, deepest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_could_take_long_is_refused_and_the_rest_is_not() {
        let rows: Vec<_> = (0..20_000).map(|n| json!({ "id": n, "tags": ["a", "b"] })).collect();
        let large = json!({ "rows": rows });
        let small = json!({ "rows": [{ "id": 1, "tags": ["a"] }] });
        for path in ["$.rows[?@.id > 5]", "$..id", "$.rows[*].tags[0]", "$.rows[0,1,2]"] {
            assert!(Path::parse(path).unwrap().query(&large).is_ok(), "{path}");
        }
        for path in [
            "$..[?count($..id) > 3]",
            "$..*..*..*..*..*",
            "$[?search(@.id, '(a|b)*c')]",
            "$[*,*][*,*][*,*][*,*][*,*][*,*][*,*][*,*][*,*][*,*][*,*]",
        ] {
            let path = Path::parse(path).unwrap();
            let error = path.query(&large).unwrap_err();
            assert!(error.message.contains("may take too long"), "{error:?}");
            assert!(path.query(&small).is_ok());
        }
    }

    #[test]
    fn a_path_that_nests_is_refused_before_it_is_parsed() {
        for nested in ["(", "[?", "!("] {
            let path = format!("$[?{}@.a", nested.repeat(200));
            assert!(Path::parse(&path).unwrap_err().message.contains("nest deeper"));
        }
        let at_the_limit = format!("$[?{}@.a{}]", "(".repeat(7), ")".repeat(7));
        assert!(Path::parse(&at_the_limit).is_ok());
    }
}
