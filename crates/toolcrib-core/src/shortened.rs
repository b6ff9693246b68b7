/// Quotes a name that a model or a server made up, with limited length: it can be anything.
pub fn shortened(name: &str) -> String {
    const LONGEST: usize = 64;
    let mut short: String = name.chars().take(LONGEST).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short.escape_debug().to_string()
}
