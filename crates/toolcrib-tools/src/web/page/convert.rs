//! HTML as Markdown, by `htmd`, with tables that are not aligned: an aligned one can be as large as
//! the square of its text.

use std::rc::Rc;

use htmd::{
    Element, HtmlToMarkdown,
    element_handler::{HandlerResult, Handlers},
    options::{BulletListMarker, HrStyle, Options},
};
use markup5ever_rcdom::Node;

use super::clean::tag;

/// The most columns of a table that is shown as one.
const MOST_COLUMNS: usize = 50;

pub(super) fn to_markdown(root: &Rc<Node>) -> String {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        hr_style: HrStyle::Dashes,
        ..Options::default()
    };
    let of_table =
        |handlers: &dyn Handlers, element: Element<'_>| Some(table(handlers, element.node));
    let converter =
        HtmlToMarkdown::builder().options(options).add_handler(vec!["table"], of_table).build();
    let text = converter.tree_to_markdown(root);
    without_gaps(&text)
}

/// A table as rows, or as paragraphs where it is a layout: tables in it, or one column.
fn table(handlers: &dyn Handlers, table: &Rc<Node>) -> HandlerResult {
    let rows = rows(table);
    let columns = rows.as_ref().and_then(|rows| rows.iter().map(Vec::len).max()).unwrap_or(0);
    let Some(rows) = rows.filter(|_| (2..=MOST_COLUMNS).contains(&columns)) else {
        let content = handlers.walk_children(table).content;
        return format!("\n\n{}\n\n", content.trim_matches('\n')).into();
    };
    let mut text = String::from("\n\n");
    for (position, row) in rows.iter().enumerate() {
        text.push('|');
        for at in 0..columns {
            let cell = row.get(at).map(|cell| handlers.walk_children(cell).content);
            let cell = cell.unwrap_or_default().replace('|', "\\|");
            for word in cell.split_whitespace() {
                text.push(' ');
                text.push_str(word);
            }
            text.push_str(" |");
        }
        text.push('\n');
        if position == 0 {
            text.push('|');
            text.push_str(&" --- |".repeat(columns));
            text.push('\n');
        }
    }
    text.push('\n');
    text.into()
}

/// The cells of each row; `None` where a cell has another table.
fn rows(table: &Rc<Node>) -> Option<Vec<Vec<Rc<Node>>>> {
    let mut rows: Vec<Vec<Rc<Node>>> = Vec::new();
    let mut left: Vec<Rc<Node>> = table.children.borrow().iter().rev().cloned().collect();
    while let Some(node) = left.pop() {
        match tag(&node) {
            Some("table") => return None,
            Some("tr") => rows.push(Vec::new()),
            Some("td" | "th") => {
                if let Some(row) = rows.last_mut() {
                    row.push(Rc::clone(&node));
                }
            }
            _ => {}
        }
        left.extend(node.children.borrow().iter().rev().cloned());
    }
    rows.retain(|row| !row.is_empty());
    Some(rows)
}

/// At most one empty line between two others, outside fenced code.
fn without_gaps(text: &str) -> String {
    let (mut kept, mut is_empty, mut is_code) = (String::with_capacity(text.len()), true, false);
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let blank = line.trim().is_empty();
        if !(blank && is_empty && !is_code) {
            // Two spaces at its end are a line break.
            kept.push_str(if blank && !is_code { "" } else { line });
            kept.push('\n');
        }
        is_empty = blank;
    }
    kept.truncate(kept.trim_end().len());
    kept
}
