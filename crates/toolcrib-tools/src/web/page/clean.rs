//! Removes all of a page that is not its content, and bounds the rest for a converter that recurses.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use html5ever::tendril::StrTendril;
use markup5ever_rcdom::{Node, NodeData};
use toolcrib_capabilities::http::Url;

use super::hidden::{Inherited, Styles};

/// Elements that are never content: scripts, forms' fields, media and navigation.
const REMOVED: &[&str] = &[
    "audio", "base", "button", "canvas", "datalist", "dialog", "embed", "footer", "frame",
    "frameset", "head", "iframe", "input", "label", "link", "map", "meta", "nav", "noscript",
    "object", "optgroup", "option", "progress", "script", "select", "style", "svg", "template",
    "textarea", "video",
];

/// Roles of elements that are not content either.
const REMOVED_ROLES: &[&str] = &["banner", "complementary", "contentinfo", "navigation", "search"];

/// The deepest element that keeps its format, and the deepest of those that indent their lines.
const MOST_DEPTH: usize = 100;
const MOST_INDENT: usize = 8;

/// More children than this are not compared with their neighbors by the converter, which is
/// quadratic in their number.
const MOST_COMPARED: usize = 512;

/// The longest URL of a link, the longest text for an image, and the most bytes of all URLs.
const MOST_URL: usize = 2000;
const MOST_ALT: usize = 500;
const MOST_URLS: usize = 2 * 1024 * 1024;

/// The most lines of preformatted text, which is indented line by line.
const MOST_LINES: usize = 50_000;

/// The fewest characters of a `<main>` or an only `<article>` that replaces the whole page.
const LEAST_MAIN: usize = 140;

/// The content of a page.
pub(super) struct CleanedPage {
    pub(super) root: Rc<Node>,
    pub(super) title: Option<String>,
    /// Whether some of it lost its format.
    pub(super) is_cut: bool,
}

/// A place on the way down.
#[derive(Clone, Copy, Default)]
struct Place {
    depth: usize,
    indent: usize,
    is_pre: bool,
    /// Whether it is in an article, whose header and notes are content.
    is_article: bool,
    style: Inherited,
}

struct Cleaner {
    styles: Styles,
    base: Url,
    urls_left: usize,
    lines_left: usize,
    is_cut: bool,
    mains: Vec<Rc<Node>>,
    articles: Vec<Rc<Node>>,
}

pub(super) fn clean(document: &Rc<Node>, url: &Url) -> CleanedPage {
    let (mut title, mut base, mut styles) = (None, None, Styles::default());
    descend(document, |node| {
        match tag(node) {
            // An SVG has titles too.
            Some("svg") => return false,
            Some("title") if title.is_none() => title = Some(text_of(node)),
            Some("base") if base.is_none() => {
                let joined = attribute(node, "href").and_then(|href| url.join(&href).ok());
                base = joined.filter(|url| matches!(url.scheme(), "http" | "https"));
            }
            Some("style") => {
                let media = attribute(node, "media").unwrap_or_default();
                if matches!(media.trim(), "" | "all" | "screen") {
                    styles.read(&text_of(node));
                }
            }
            Some("link") => {
                let rel = attribute(node, "rel").unwrap_or_default().to_ascii_lowercase();
                styles.has_foreign |= rel.split_ascii_whitespace().any(|one| one == "stylesheet");
            }
            _ => {}
        }
        true
    });
    let mut cleaner = Cleaner {
        styles,
        base: base.unwrap_or_else(|| url.clone()),
        urls_left: MOST_URLS,
        lines_left: MOST_LINES,
        is_cut: false,
        mains: Vec::new(),
        articles: Vec::new(),
    };
    let style = cleaner.styles.of_page();
    let mut left = vec![(Rc::clone(document), Place { style, ..Place::default() })];
    while let Some((node, place)) = left.pop() {
        cleaner.children(&node, place, &mut left);
    }
    let main = match (cleaner.mains.as_slice(), cleaner.articles.as_slice()) {
        ([main, ..], _) | ([], [main]) if has_text(main, LEAST_MAIN) => Rc::clone(main),
        _ => Rc::clone(document),
    };
    let title = title.filter(|title| !title.trim().is_empty());
    CleanedPage { root: main, title, is_cut: cleaner.is_cut }
}

impl Cleaner {
    /// Cleans the children of an element, and adds those that have children to the places left.
    fn children(&mut self, node: &Rc<Node>, place: Place, left: &mut Vec<(Rc<Node>, Place)>) {
        let children = node.children.take();
        let is_long = children.len() > MOST_COMPARED;
        let mut kept = Vec::with_capacity(children.len());
        for child in children {
            if let NodeData::Text { contents } = &child.data {
                if place.style.hides_text() {
                    continue;
                }
                if place.is_pre {
                    self.bound_lines(contents);
                }
                kept.push(child);
                continue;
            }
            let Some(name) = tag(&child) else { continue };
            if is_removed(&child, name, place) || (name == "img" && !self.keeps_image(&child)) {
                continue;
            }
            let (is_unseen, style) = self.styles.look(&child, place.style);
            if is_unseen || (name == "img" && style.hides_text()) {
                continue;
            }
            let indents = matches!(name, "blockquote" | "ul" | "ol" | "dl");
            let inner = Place {
                depth: place.depth + 1,
                indent: place.indent + usize::from(indents),
                is_pre: place.is_pre || name == "pre",
                is_article: place.is_article || matches!(name, "article" | "main" | "section"),
                style,
            };
            if inner.depth > MOST_DEPTH || inner.indent > MOST_INDENT {
                self.is_cut = true;
                let contents =
                    RefCell::new(StrTendril::from_slice(&self.visible_text(&child, style)));
                if inner.is_pre {
                    self.bound_lines(&contents);
                }
                let flat = Node::new(NodeData::Text { contents });
                flat.parent.set(Some(Rc::downgrade(node)));
                kept.push(flat);
                continue;
            }
            self.attributes(&child, name);
            match name {
                "main" => self.mains.push(Rc::clone(&child)),
                "article" if !place.is_article => self.articles.push(Rc::clone(&child)),
                _ => {}
            }
            if is_long {
                // Two elements with a text between them are not compared.
                kept.push(empty_text(node));
            }
            left.push((Rc::clone(&child), inner));
            kept.push(child);
        }
        node.children.replace(kept);
    }

    /// Leaves only the attributes that Markdown has, with absolute URLs.
    fn attributes(&mut self, node: &Node, name: &str) {
        let NodeData::Element { attrs, .. } = &node.data else { return };
        attrs.borrow_mut().retain_mut(|attribute| {
            let value = &mut attribute.value;
            match (name, &*attribute.name.local) {
                ("a", "href") | ("img", "src") => match self.absolute(value, name == "a") {
                    Some(url) => {
                        *value = StrTendril::from_slice(&url);
                        true
                    }
                    None => false,
                },
                ("img", "alt") => value.len() <= MOST_ALT,
                ("ol", "start") => value.len() <= 6,
                ("pre" | "code", "class") => value.len() <= 100,
                _ => false,
            }
        });
    }

    /// An absolute URL of a scheme that a reader can follow. A link within the page is none.
    fn absolute(&mut self, href: &str, is_link: bool) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.len() > MOST_URL || href.starts_with('#') {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let is_known = match url.scheme() {
            "http" | "https" => true,
            "mailto" => is_link,
            _ => false,
        };
        if !is_known || url.as_str().len() > MOST_URL {
            return None;
        }
        self.urls_left = self.urls_left.checked_sub(url.as_str().len())?;
        // Markdown's own characters would end the link.
        let escaped = |text: &str| text.replace('<', "%3C").replace('>', "%3E").replace(' ', "%20");
        Some(escaped(url.as_str()))
    }

    /// The text of an element whose format is lost, without what is removed elsewhere.
    fn visible_text(&self, node: &Rc<Node>, style: Inherited) -> String {
        let in_article = Place { is_article: true, ..Place::default() };
        let mut text = String::from(" ");
        let mut left = vec![(Rc::clone(node), style)];
        while let Some((node, around)) = left.pop() {
            if let NodeData::Text { contents } = &node.data
                && !around.hides_text()
            {
                text.push_str(&contents.borrow());
                text.push(' ');
            }
            let (is_unseen, style) = self.styles.look(&node, around);
            if is_unseen || tag(&node).is_some_and(|name| is_removed(&node, name, in_article)) {
                continue;
            }
            left.extend(node.children.borrow().iter().rev().map(|child| (Rc::clone(child), style)));
        }
        text
    }

    /// An image without a text says nothing to a model.
    fn keeps_image(&self, node: &Node) -> bool {
        let alt = attribute(node, "alt");
        let source = attribute(node, "src");
        alt.is_some_and(|alt| !alt.trim().is_empty())
            && source.is_some_and(|source| !source.trim_start().starts_with("data:"))
    }

    fn bound_lines(&mut self, contents: &RefCell<StrTendril>) {
        let lines = contents.borrow().matches('\n').count();
        match self.lines_left.checked_sub(lines) {
            Some(rest) => self.lines_left = rest,
            None => {
                self.is_cut = true;
                let flat = contents.borrow().replace('\n', " ");
                contents.replace(StrTendril::from_slice(&flat));
            }
        }
    }
}

/// Whether an element is not content, or is hidden from readers.
fn is_removed(node: &Rc<Node>, name: &str, place: Place) -> bool {
    if REMOVED.contains(&name) {
        return true;
    }
    let NodeData::Element { attrs, .. } = &node.data else { return false };
    let is_hidden = attrs.borrow().iter().any(|attribute| {
        let value = attribute.value.trim();
        match &*attribute.name.local {
            // `until-found` is shown by a search in the page.
            "hidden" => !value.eq_ignore_ascii_case("until-found"),
            "aria-hidden" => value.eq_ignore_ascii_case("true"),
            "role" => REMOVED_ROLES.iter().any(|role| value.eq_ignore_ascii_case(role)),
            _ => false,
        }
    });
    let surrounds = match name {
        // In an article it is often a note of its author.
        "aside" => true,
        "header" => !contains(node, "h1"),
        _ => false,
    };
    is_hidden || (surrounds && !place.is_article)
}

fn contains(node: &Rc<Node>, name: &str) -> bool {
    let mut found = false;
    descend(node, |node| {
        found |= tag(node) == Some(name);
        !found
    });
    found
}

fn has_text(node: &Rc<Node>, chars: usize) -> bool {
    let mut left = chars;
    descend(node, |node| {
        if let NodeData::Text { contents } = &node.data {
            left = left.saturating_sub(contents.borrow().trim().chars().count());
        }
        left > 0
    });
    left == 0
}

fn text_of(node: &Rc<Node>) -> String {
    let mut text = String::new();
    descend(node, |node| {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        }
        true
    });
    text
}

/// Visits a tree in its order, without recursion. The visitor decides whether children follow.
fn descend(root: &Rc<Node>, mut visit: impl FnMut(&Rc<Node>) -> bool) {
    let mut left = vec![Rc::clone(root)];
    while let Some(node) = left.pop() {
        if visit(&node) {
            left.extend(node.children.borrow().iter().rev().cloned());
        }
    }
}

pub(super) fn tag(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

fn attribute(node: &Node, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    let attrs = attrs.borrow();
    let found = attrs.iter().find(|attribute| &*attribute.name.local == name)?;
    Some(found.value.to_string())
}

fn empty_text(parent: &Rc<Node>) -> Rc<Node> {
    let node = Node::new(NodeData::Text { contents: RefCell::new(StrTendril::new()) });
    Cell::set(&node.parent, Some(Rc::downgrade(parent)));
    node
}
