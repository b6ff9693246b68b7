//! Parameters by name: `:name` becomes `$1`.

use crate::database::StatementError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberedStatement {
    pub(super) sql: String,
    /// The names in the order of their numbers, each once.
    pub(super) names: Vec<String>,
    /// The first parameter that is written as a number, such as `$1`.
    number: Option<String>,
    /// For each parameter, the byte after it in `sql`, and in the statement as written.
    ends: Vec<(usize, usize)>,
}

impl NumberedStatement {
    /// Numbers the parameters outside strings, quoted names and comments.
    pub(super) fn of(written: &str) -> Self {
        let mut numbered = Self {
            sql: String::with_capacity(written.len()),
            names: Vec::new(),
            number: None,
            ends: Vec::new(),
        };
        let mut at = 0;
        while let Some(rest) = written.get(at..).filter(|rest| !rest.is_empty()) {
            let before = written.get(..at).unwrap_or_default();
            let length = if let Some(name) = name(rest).filter(|_| !before.ends_with(':')) {
                let known = numbered.names.iter().position(|known| known == name);
                let number = known.unwrap_or_else(|| {
                    numbered.names.push(name.to_owned());
                    numbered.names.len() - 1
                });
                numbered.sql.push_str(&format!("${}", number + 1));
                let length = ":".len() + name.len();
                numbered.ends.push((numbered.sql.len(), at + length));
                length
            } else {
                if numbered.number.is_none() && !ends_name(before) {
                    numbered.number = number(rest).map(str::to_owned);
                }
                let length = token(before, rest);
                numbered.sql.push_str(rest.get(..length).unwrap_or(rest));
                length
            };
            at += length;
        }
        numbered
    }

    /// Refuses a parameter that is written as a number. It would be one of those with names.
    pub(super) fn check(&self) -> Result<(), StatementError> {
        let refused = |number| format!("write parameters as `:name`, not by number: `{number}`");
        self.number.as_ref().map_or(Ok(()), |number| Err(StatementError::Refused(refused(number))))
    }

    /// The byte of the statement as written for a character of the numbered one, from 1.
    pub(super) fn written(&self, character: u32) -> Option<usize> {
        let character = usize::try_from(character).ok()?.checked_sub(1)?;
        let byte = self.sql.char_indices().nth(character).map_or(self.sql.len(), |(at, _)| at);
        let before = self.ends.iter().rev().find(|(end, _)| *end <= byte);
        let (end, written) = before.copied().unwrap_or_default();
        Some(written + (byte - end))
    }
}

/// The first parameter, in the syntax of any database, of a statement that the server cannot read.
pub(super) fn unbound(sql: &str) -> Option<&str> {
    let mut at = 0;
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        let before = sql.get(..at)?;
        let length = token(before, rest);
        let is_alone = !ends_name(before) && !before.ends_with([':', ']', ')', '?']);
        if length == 1 && is_alone {
            let named = ['$', '@'].into_iter().find_map(|sign| {
                let after = rest.strip_prefix(sign)?;
                rest.get(..1 + name_length(after)).filter(|found| found.len() > 1)
            });
            let found = name(rest).and_then(|name| rest.get(..1 + name.len()));
            if let Some(found) = found.or(named).or_else(|| question_mark(rest)) {
                return Some(found);
            }
        }
        at += length;
    }
    None
}

/// `?` or `?1` at the start, unless it is an operator: no operand follows.
fn question_mark(rest: &str) -> Option<&str> {
    let after = rest.strip_prefix('?')?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let (_, next) = after.split_at_checked(digits)?;
    let next = next.trim_start();
    let word = next.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let goes_on = ["and", "or", "order", "group", "limit", "offset", "union", "having", "then"];
    let ends = next.is_empty() || next.starts_with([',', ')', ';', ':']);
    let is_value = digits > 0 || ends || goes_on.iter().any(|one| word.eq_ignore_ascii_case(one));
    rest.get(..1 + digits).filter(|_| is_value)
}

/// `$1` at the start.
fn number(rest: &str) -> Option<&str> {
    let after = rest.strip_prefix('$')?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    rest.get(..1 + digits).filter(|_| digits > 0)
}

/// Whether a name or a number may end here, so that `$` belongs to it.
fn ends_name(before: &str) -> bool {
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$')
}

/// The bytes of the name at the start.
fn name_length(text: &str) -> usize {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    if text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        text.find(|c| !is_name(c)).unwrap_or(text.len())
    } else {
        0
    }
}

/// The name of a parameter at the start.
fn name(rest: &str) -> Option<&str> {
    let after = rest.strip_prefix(':')?;
    after.get(..name_length(after)).filter(|name| !name.is_empty())
}

/// The bytes of the string, quoted name or comment at the start; of one character otherwise.
pub(super) fn token(before: &str, rest: &str) -> usize {
    let end = |from: usize, close: &str| {
        let found = rest.get(from..).and_then(|inner| inner.find(close));
        found.map_or(rest.len(), |at| from + at + close.len())
    };
    if rest.starts_with('\'') {
        // E'it\'s': a backslash escapes only in such a string.
        let mut chars = before.chars().rev();
        let has_prefix = matches!(chars.next(), Some('e' | 'E'))
            && !chars.next().is_some_and(|c| c.is_alphanumeric() || c == '_');
        return if has_prefix { escaped_string(rest) } else { end(1, "'") };
    }
    if rest.starts_with('"') {
        return end(1, "\"");
    }
    if rest.starts_with("--") {
        return end(2, "\n");
    }
    if rest.starts_with("/*") {
        return comment(rest);
    }
    if let Some(tag) = dollar_tag(rest)
        && !ends_name(before)
    {
        return end(tag.len(), tag);
    }
    rest.chars().next().map_or(0, char::len_utf8)
}

fn escaped_string(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\'' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// PostgreSQL's comments are nested.
fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(inner) = rest.get(at..).filter(|inner| !inner.is_empty()) {
        if inner.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if inner.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += inner.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// `$$` or `$tag$` at the start.
fn dollar_tag(rest: &str) -> Option<&str> {
    let after = rest.strip_prefix('$')?;
    let end = after.find('$')?;
    let tag = after.get(..end)?;
    let is_tag = !tag.starts_with(|c: char| c.is_ascii_digit())
        && tag.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_tag.then(|| rest.get(..end + 2)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(sql: &str) -> (String, Vec<String>) {
        let NumberedStatement { sql, names, .. } = NumberedStatement::of(sql);
        (sql, names)
    }

    #[test]
    fn parameters_are_numbered_by_name() {
        let (sql, names) = numbered("SELECT :a::int, x FROM t WHERE y = :bé_1 OR z=:a");
        assert_eq!(sql, "SELECT $1::int, x FROM t WHERE y = $2 OR z=$1");
        assert_eq!(names, ["a", "bé_1"]);
    }

    #[test]
    fn strings_names_and_comments_have_no_parameters() {
        for sql in [
            "SELECT ':a', 'it''s :a', \"col:a\", E'\\':a', e'\\\\', a[1:2]",
            "SELECT 1 -- :a\n, 2 /* :a /* :b */ :c */",
            "SELECT $$:a$$, $x$ :a $$ :b $x$, 1::text, now()::date",
            "SELECT 'open :a",
            "SELECT $1:",
            "/* open :a",
        ] {
            assert_eq!(numbered(sql), (sql.to_owned(), Vec::new()));
        }
        assert_eq!(numbered("SELECT E'\\\\', :a").0, "SELECT E'\\\\', $1");
        assert_eq!(numbered("SELECT name'\\', :a").0, "SELECT name'\\', $1");
    }

    #[test]
    fn a_place_in_the_numbered_statement_is_one_in_the_written_one() {
        let written = "SELECT :first, é, :second, nope";
        let numbered = NumberedStatement::of(written);
        for word in ["SELECT", "é", "nope"] {
            let byte = numbered.sql.find(word).unwrap();
            let character = numbered.sql[..byte].chars().count() as u32 + 1;
            assert_eq!(numbered.written(character), written.find(word), "{word}");
        }
        assert_eq!(numbered.written(1000), Some(written.len()));
        assert_eq!(numbered.written(0), None);
    }
}
