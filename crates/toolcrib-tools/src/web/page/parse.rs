//! Parses HTML of an unknown author within a number of elements and of steps.
//!
//! The standard's algorithm is quadratic for some texts, in elements and in steps: each paragraph
//! reopens all the bold texts that were never closed, and each tag may search all open elements.
//! So the text is fed in pieces of one tag, and the limits are checked after each of them. No limit
//! is a time, so that a page is read or refused in the same way on every machine.

use std::{borrow::Cow, cell::Cell, rc::Rc};

use html5ever::{
    Attribute, ParseOpts, QualName,
    interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink},
    parse_document,
    tendril::{StrTendril, TendrilSink},
    tree_builder::Tracer,
};
use markup5ever_rcdom::{Node, NodeData, RcDom};
use toolcrib_core::CancellationToken;

use super::{PageError, attributes::Attributes};

/// The most elements, comments and attributes of a page.
const MOST_PARTS: usize = 150_000;

/// The most open elements. Browsers cut at 512.
const MOST_OPEN: usize = 1000;

/// The most attributes of an element. Each is compared with all others of its element.
const MOST_ATTRIBUTES: usize = 1000;

/// The most steps: elements and attributes that the algorithm looks at. Articles need 20 for each
/// of their elements.
const MOST_STEPS: usize = 30_000_000;

/// The longest piece, in bytes.
const PIECE: usize = 1024;

/// The document.
pub(super) fn parse(html: &str, cancel: &CancellationToken) -> Result<Rc<Node>, PageError> {
    parse_counted(html, &Rc::default(), cancel)
}

fn parse_counted(
    html: &str,
    counts: &Rc<Counts>,
    cancel: &CancellationToken,
) -> Result<Rc<Node>, PageError> {
    let sink = CountingSink { dom: RcDom::default(), counts: Rc::clone(counts) };
    let mut parser = parse_document(sink, ParseOpts::default());
    let mut tag = Attributes::default();
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(piece(rest));
        rest = others;
        let before = counts.changes.get();
        // Before it is fed: the attributes of one tag are compared with each other there.
        if tag.feed(piece) > MOST_ATTRIBUTES {
            return Err(PageError::TooComplex);
        }
        parser.process(StrTendril::from_slice(piece));
        if counts.changes.get() != before {
            // No tag reaches from before a change to after it; a tag may begin after it.
            tag = Attributes::default();
            tag.feed(piece);
            let open = OpenTags::default();
            parser.tokenizer.sink.trace_handles(&open);
            if open.elements.get() > MOST_OPEN {
                return Err(PageError::TooComplex);
            }
            // A formatting element is compared with all open ones, with all their attributes.
            counts.step(open.elements.get().saturating_add(open.attributes.get()));
        }
        if counts.parts.get() > MOST_PARTS || counts.steps.get() > MOST_STEPS {
            return Err(PageError::TooComplex);
        }
        if cancel.is_cancelled() {
            return Err(PageError::Cancelled);
        }
    }
    Ok(parser.finish())
}

/// The end of the first piece: before the next tag.
fn piece(text: &str) -> usize {
    let end = text.floor_char_boundary(PIECE);
    let bytes = text.as_bytes().get(1..end).unwrap_or_default();
    bytes.iter().position(|byte| *byte == b'<').map_or(end, |at| at + 1)
}

/// The counts so far.
#[derive(Default)]
struct Counts {
    parts: Cell<usize>,
    steps: Cell<usize>,
    /// Each change of the tree.
    changes: Cell<usize>,
}

impl Counts {
    fn part(&self, parts: usize) {
        self.parts.set(self.parts.get().saturating_add(parts));
        self.changes.set(self.changes.get().wrapping_add(1));
    }

    fn step(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    /// A step for each child of a parent that is searched.
    fn search(&self, parent: Option<&Rc<Node>>) {
        self.step(parent.map_or(1, |parent| parent.children.borrow().len()));
        self.changes.set(self.changes.get().wrapping_add(1));
    }
}

/// Counts the elements that the parser has open, and their attributes.
#[derive(Default)]
struct OpenTags {
    elements: Cell<usize>,
    attributes: Cell<usize>,
}

impl Tracer for OpenTags {
    type Handle = Rc<Node>;

    fn trace_handle(&self, node: &Rc<Node>) {
        self.elements.set(self.elements.get().saturating_add(1));
        if let NodeData::Element { attrs, .. } = &node.data {
            self.attributes.set(self.attributes.get().saturating_add(attrs.borrow().len()));
        }
    }
}

/// A tree that counts the work on it, and keeps no errors.
struct CountingSink {
    dom: RcDom,
    counts: Rc<Counts>,
}

fn parent(node: &Node) -> Option<Rc<Node>> {
    let parent = node.parent.take();
    let found = parent.as_ref().and_then(std::rc::Weak::upgrade);
    node.parent.set(parent);
    found
}

impl TreeSink for CountingSink {
    type Handle = Rc<Node>;
    type Output = Rc<Node>;
    type ElemName<'a> = <RcDom as TreeSink>::ElemName<'a>;

    fn finish(self) -> Rc<Node> {
        self.dom.document
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Rc<Node> {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<Node>) -> Self::ElemName<'a> {
        self.counts.step(1);
        self.dom.elem_name(target)
    }

    fn create_element(
        &self,
        name: QualName,
        attrs: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Rc<Node> {
        self.counts.part(attrs.len().saturating_add(1));
        self.dom.create_element(name, attrs, flags)
    }

    fn create_comment(&self, _: StrTendril) -> Rc<Node> {
        self.counts.part(1);
        self.dom.create_comment(StrTendril::new())
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Rc<Node> {
        self.counts.part(1);
        self.dom.create_comment(StrTendril::new())
    }

    fn append(&self, parent: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.counts.part(0);
        self.dom.append(parent, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<Node>,
        previous: &Rc<Node>,
        child: NodeOrText<Rc<Node>>,
    ) {
        self.counts.search(parent(element).as_ref());
        self.dom.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &Rc<Node>) -> Rc<Node> {
        self.dom.get_template_contents(target)
    }

    fn same_node(&self, one: &Rc<Node>, other: &Rc<Node>) -> bool {
        self.counts.step(1);
        Rc::ptr_eq(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.counts.search(parent(sibling).as_ref());
        self.dom.append_before_sibling(sibling, child);
    }

    fn add_attrs_if_missing(&self, target: &Rc<Node>, attrs: Vec<Attribute>) {
        self.counts.part(attrs.len());
        self.dom.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Rc<Node>) {
        self.counts.search(parent(target).as_ref());
        self.dom.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Rc<Node>, new_parent: &Rc<Node>) {
        self.counts.search(Some(node));
        self.dom.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Rc<Node>) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(target)
    }

    // The default for the content of a `<select>`: it is not copied, which would recurse.
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts and steps of a text, and whether it was refused.
    fn counted(html: &str) -> (usize, usize, bool) {
        let counts = Rc::<Counts>::default();
        let parsed = parse_counted(html, &counts, &CancellationToken::new());
        (counts.parts.get(), counts.steps.get(), parsed.is_err())
    }

    #[test]
    fn a_text_that_multiplies_is_refused_within_the_limits() {
        let attributes = |count: usize| (0..count).map(|n| format!(" a{n}")).collect::<String>();
        let open: String = (0..900).map(|n| format!("<b id={n}>")).collect();
        for (name, html) in [
            ("open elements", "<div>".repeat(200_000)),
            ("many elements", "<hr>".repeat(200_000)),
            ("reopened elements", format!("{open}{}", "<p>x".repeat(50_000))),
            ("reopened attributes", format!("<b{}>{}", attributes(900), "<p>x".repeat(50_000))),
            ("one tag", format!("<p{}>", attributes(200_000))),
            ("a tag after a reference", format!("&amp<p{}>", attributes(200_000))),
            ("a tag with quotes", format!("<p a='<b' c=\"'>\" {}>", attributes(200_000))),
            ("moved before a table", format!("<table>{}", "<i>x</i>".repeat(70_000))),
            ("searched for an end", format!("{}{}", "<span>".repeat(900), "</x>".repeat(200_000))),
            ("compared attributes", format!("<b{}>{}", attributes(900), "<b>x</b>".repeat(70_000))),
        ] {
            let (parts, steps, is_refused) = counted(&html);
            assert!(is_refused, "{name}: {parts} parts, {steps} steps");
            // One tag can exceed a limit by what is open.
            assert!(parts < 2 * MOST_PARTS, "{name}: {parts} parts");
            assert!(steps < 2 * MOST_STEPS, "{name}: {steps} steps");
        }
    }

    #[test]
    fn an_ordinary_text_needs_a_small_part_of_the_limits() {
        let item =
            "<li class='a b'><a href='/x' title=y>One <b>two</b></a><span id=z>three</span></li>";
        let html = format!("<main>{}{}", "<div>".repeat(30), item.repeat(10_000));
        let (parts, steps, is_refused) = counted(&html);
        assert!(!is_refused && parts < MOST_PARTS && steps < MOST_STEPS / 3, "{parts} {steps}");
    }
}
