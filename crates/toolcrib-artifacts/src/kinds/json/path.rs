//! JSONPath (RFC 9535) with limited cost.
//!
//! An evaluation cannot be stopped, and some short paths take a time that grows with a power of the
//! document. The cost of a path is therefore estimated before, and one that may be too expensive is
//! refused.

use serde_json::Value;
use serde_json_path::JsonPath;
use toolcrib_core::ToolError;

/// The maximum length of a path, in characters.
pub(super) const LONGEST_PATH: usize = 500;

/// The maximum nesting of its brackets: the parser is recursive.
const DEEPEST_PATH: usize = 8;

/// The maximum number of visited values, at about 200 ns each.
const MOST_STEPS: u128 = 1_000_000;

/// The cost of the smallest regular expression, which is compiled for each value that it is matched
/// against.
const REGEX_COST: u128 = 100;

/// The cost of each further character.
const CHARACTER_COST: u128 = 4;

/// The factor of an escape: `\w` and `\p{L}` expand to hundreds of ranges.
const ESCAPE_COST: u128 = 10;

/// A path that can be evaluated.
#[derive(Debug)]
pub(super) struct Path {
    path: JsonPath,
    cost: Cost,
}

/// The features that make a path visit a value more than once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Cost {
    /// `..`, inside and outside filters.
    descents: u32,
    /// `$` in filters: they restart at the root.
    roots: u32,
    /// Filters.
    filters: u32,
    /// Additional selectors in a bracket.
    commas: u32,
    /// The cost of the regular expressions for each value; `None` if one may come from the
    /// document.
    regex: Option<u128>,
}

impl Path {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let invalid = |why: String| {
            ToolError::input_invalid(format!("`path` is not a usable JSONPath: {why}"))
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

    /// The matches, in order.
    pub(super) fn query<'v>(&self, document: &'v Value) -> Result<Vec<&'v Value>, ToolError> {
        if self.cost.on(document) > MOST_STEPS {
            return Err(ToolError::input_invalid(
                "`path` may take too long on this much JSON: use fewer `..`, no `$` and no \
                 match() or search() in filters, or only a part, with `at`",
            ));
        }
        Ok(self.path.query(document).all())
    }
}

impl Cost {
    /// Computes the cost of a path; `None` if it nests too deep.
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
        cost.regex = regex_cost(path);
        Some(cost)
    }

    /// The maximum number of visited values in this document.
    fn on(self, document: &Value) -> u128 {
        let (values, depth) = size(document);
        let power = |base: u128, exponent: u32| base.saturating_pow(exponent);
        // A value is reached by one way, unless `..` reaches it from each of its ancestors.
        let descents = power(depth, self.descents.saturating_sub(1));
        let filters = power(depth, self.filters.saturating_sub(1));
        let regex = self.regex.unwrap_or(MOST_STEPS);
        [descents, filters, power(values, self.roots), power(2, self.commas), regex]
            .into_iter()
            .fold(values, u128::saturating_mul)
    }
}

/// The cost of `match()` and `search()` for each value. Repetition counts multiply the size of a
/// pattern: 15 characters compile for 10 ms.
fn regex_cost(path: &str) -> Option<u128> {
    let mut calls = ["match(", "search("].into_iter().flat_map(|call| path.split(call).skip(1));
    if !calls.all(ends_with_a_literal) {
        return None;
    }
    if !path.contains("match(") && !path.contains("search(") {
        return Some(1);
    }
    if path.contains("\\u") {
        // It may hide a repetition count.
        return None;
    }
    let escapes = if path.contains('\\') { ESCAPE_COST } else { 1 };
    let inside = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let counts = inside.flat_map(|inside| inside.split(',')).filter_map(|count| {
        let count = count.trim();
        // A count that is too large to parse is too large to compile, too.
        count.starts_with(|c: char| c.is_ascii_digit()).then(|| count.parse().unwrap_or(MOST_STEPS))
    });
    let smallest = (REGEX_COST + CHARACTER_COST * path.len() as u128) * escapes;
    Some(counts.fold(smallest, |cost, count: u128| cost.saturating_mul(count.max(1))))
}

/// Whether the last argument of the call that is open here is a literal.
fn ends_with_a_literal(rest: &str) -> bool {
    let (mut quote, mut depth, mut last, mut is_escaped) = (None, 1_usize, ' ', false);
    for c in rest.chars() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == ')' && depth == 1 => return matches!(last, '\'' | '"'),
            None => match c {
                '\'' | '"' => quote = Some(c),
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            },
        }
        if !c.is_whitespace() {
            last = c;
        }
    }
    true
}

/// The number of values, and their depth, from 1.
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
    fn a_pattern_costs_what_compiling_it_for_each_value_does() {
        let rows: Vec<_> =
            (0..100).map(|n| json!({ "id": "a", "p": "(a{1000}){100}", "n": n })).collect();
        let document = json!({ "rows": rows });
        for path in [
            "$.rows[?search(@.id, '((a|b|[^c]){40}){40}z')]",
            "$.rows[?search(@.id, '(a{1000}){99999999999999999999999999999999999999999}')]",
            "$.rows[?search(@.id, 'a\\u007b1000}')]",
            "$.rows[?search(@.id, @.p)]",
            "$.rows[?match(@.id, @['p']) && @.id == 'a']",
            "$.rows[?match('a', value(@.p))]",
        ] {
            let error = Path::parse(path).unwrap().query(&document).unwrap_err();
            assert!(error.message.contains("may take too long"), "{path}: {error:?}");
        }
        for path in [
            "$.rows[?search(@.id, '^[a-z]{1,3}$')]",
            "$.rows[?match(@['id'], \"a|b\" ) && @.n > 5]",
            "$.rows[?@.id == 'match(']",
        ] {
            assert!(Path::parse(path).unwrap().query(&document).is_ok(), "{path}");
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
