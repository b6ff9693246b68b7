//! The `envFile` of a server: a file of environment variables.

/// The variables of a file: one `NAME=VALUE` a line, with `export`, quotes, blank lines and
/// comments. A later line replaces an earlier one.
///
/// # Errors
/// The number of the first invalid line; its text may be a secret.
pub(super) fn variables(text: &str) -> Result<Vec<(&str, &str)>, usize> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(number + 1)?;
        let (name, value) = (name.trim(), unquoted(value.trim()));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if name.is_empty() || !name.chars().all(is_plain) || value.contains('\0') {
            return Err(number + 1);
        }
        found.retain(|(known, _)| *known != name);
        found.push((name, value));
    }
    Ok(found)
}

/// A value without its quotes, or without the comment after it.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inside = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
        if let Some((inside, _)) = inside {
            return inside;
        }
    }
    value.split_once(" #").map_or(value, |(value, _)| value.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_variables() {
        let text = "# a\n\nexport A=1\nB = \"x # y\" # z\nC='q'\nD=w # v\nA=2\nE=a#b\nF=\n";
        let expected =
            [("B", "x # y"), ("C", "q"), ("D", "w"), ("A", "2"), ("E", "a#b"), ("F", "")];
        assert_eq!(variables(text), Ok(expected.to_vec()));
        assert_eq!(variables("A=1\nhush-hush"), Err(2));
        assert_eq!(variables("A B=1"), Err(1));
        assert_eq!(variables(""), Ok(Vec::new()));
    }
}
