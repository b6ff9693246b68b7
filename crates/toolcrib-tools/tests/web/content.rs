//! How much of a page's content is kept, and how much else: words of pages with a known content.

use std::collections::HashMap;

use crate::support::read_html;

/// Pages and their content, of the kinds that agents read.
const PAGES: [(&str, &str, &str); 7] = [
    ("article", include_str!("pages/article.html"), include_str!("pages/article.txt")),
    ("blog", include_str!("pages/blog.html"), include_str!("pages/blog.txt")),
    ("news", include_str!("pages/news.html"), include_str!("pages/news.txt")),
    ("plain", include_str!("pages/plain.html"), include_str!("pages/plain.txt")),
    ("reference", include_str!("pages/reference.html"), include_str!("pages/reference.txt")),
    ("shop", include_str!("pages/shop.html"), include_str!("pages/shop.txt")),
    ("thread", include_str!("pages/thread.html"), include_str!("pages/thread.txt")),
];

fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.split(|at: char| !at.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    words
}

/// Markdown without the targets of its links and the language of its code.
fn text_of(markdown: &str) -> String {
    let targets = regex_lite::Regex::new(r"\]\([^)]*\)|```[a-z]+").unwrap();
    targets.replace_all(markdown, " ").into_owned()
}

#[tokio::test]
async fn reading_a_page_keeps_its_content_and_drops_the_rest() {
    let (mut kept, mut read_words, mut content_words) = (0, 0, 0);
    let mut table = String::from("page         precision  recall\n");
    for (name, page, content) in PAGES {
        let (read, content) = (words(&text_of(&read_html(page).await)), words(content));
        let of_page: usize =
            content.iter().map(|(word, count)| read.get(word).unwrap_or(&0).min(count)).sum();
        let (of_read, of_content): (usize, usize) = (read.values().sum(), content.values().sum());
        let share = |of: usize| of_page as f64 / of as f64;
        table += &format!("{name:<12} {:>9.3} {:>7.3}\n", share(of_read), share(of_content));
        kept += of_page;
        read_words += of_read;
        content_words += of_content;
    }
    let (precision, recall) = (kept as f64 / read_words as f64, kept as f64 / content_words as f64);
    table += &format!("{:<12} {precision:>9.3} {recall:>7.3}\n", "all");
    println!("{table}");
    assert!(precision > 0.85 && recall > 0.99, "{table}");
}
