/// The beginning of a text, of this number of characters, and `…` if more follows.
pub fn beginning(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Quotes a name that a model or a server made up, with limited length: it can be anything.
pub fn shortened(name: &str) -> String {
    const LONGEST: usize = 64;
    beginning(name, LONGEST).escape_debug().to_string()
}
