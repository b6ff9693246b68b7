//! `EXPLAIN`, divided into its options and the statement that it explains.

use super::placeholders::token;

/// Words that options in parentheses begin with; a query in parentheses begins with others.
const OPTIONS: &str = "analyze analyse buffers costs format generic_plan memory serialize settings \
    summary timing verbose wal";

/// A statement without its `EXPLAIN`, and that again with its options as the server reads them.
pub(super) struct Explained<'a> {
    pub(super) statement: &'a str,
    pub(super) prefix: String,
}

impl<'a> Explained<'a> {
    /// Divides a statement; `None` if it does not begin with `EXPLAIN`. The options contain only
    /// words and commas, so that the prefix cannot begin another statement.
    pub(super) fn of(sql: &'a str) -> Option<Self> {
        let mut rest = after_word(sql, &["explain"])?;
        let mut options = Vec::new();
        let in_parentheses = skip(rest).strip_prefix('(').and_then(|inner| inner.split_once(')'));
        if let Some((list, after)) = in_parentheses.filter(|(list, _)| is_options(list)) {
            options.push(list);
            rest = after;
        } else {
            for (word, names) in
                [("ANALYZE", &["analyze", "analyse"] as &[_]), ("VERBOSE", &["verbose"])]
            {
                if let Some(after) = after_word(rest, names) {
                    options.push(word);
                    rest = after;
                }
            }
        }
        let options = options.join(", ");
        let prefix = if options.is_empty() {
            "EXPLAIN ".to_owned()
        } else {
            format!("EXPLAIN ({options}) ")
        };
        Some(Self { statement: rest, prefix })
    }
}

fn is_options(list: &str) -> bool {
    let word = list.trim_start().split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
    list.chars().all(|c| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "_,".contains(c))
        && OPTIONS.split(' ').any(|one| word.is_some_and(|word| word.eq_ignore_ascii_case(one)))
}

/// The text after one of the words, which whitespace and comments may precede.
pub(super) fn after_word<'a>(sql: &'a str, words: &[&str]) -> Option<&'a str> {
    let text = skip(sql);
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (word, after) = text.split_at_checked(end)?;
    words.iter().any(|one| word.eq_ignore_ascii_case(one)).then_some(after)
}

/// The text without the whitespace and comments at its start.
fn skip(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    while rest.starts_with("--") || rest.starts_with("/*") {
        rest = rest.get(token("", rest)..).unwrap_or_default().trim_start();
    }
    rest
}
