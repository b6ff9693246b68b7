//! Frontmatter of Markdown files.

/// The text between the first two lines of `---`, and the text below; `None` if the first line is another
/// one, or no second one follows.
pub fn split_frontmatter(text: &str) -> Option<(&str, &str)> {
    // Programs on Windows begin files with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let start = lines.next().filter(|line| is_fence(line))?.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Some((text.get(start..end)?, text.get(end + line.len()..)?));
        }
        end += line.len();
    }
    None
}
