//! Which text of a page its reader cannot see, by its style: inline, and by the rules of the page's own
//! style sheets with simple selectors. Other style sheets are not requested.

use std::{collections::HashMap, rc::Rc};

use markup5ever_rcdom::{Node, NodeData};

use super::clean::tag;

/// The most rules, and the most bytes of style sheets, that are read.
const MOST_RULES: usize = 2_000;
const MOST_BYTES: usize = 512 * 1024;

/// The most classes of an element that are looked up.
const MOST_CLASSES: usize = 32;

/// The most bytes of an element's own style.
const MOST_STYLE: usize = 2_000;

/// The effect of declarations; of several for one property, the last one counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Effect {
    display: Option<bool>,
    visibility: Option<bool>,
    opacity: Option<bool>,
    size: Option<bool>,
    clip: Option<bool>,
    place: Option<bool>,
    indent: Option<bool>,
    scale: Option<bool>,
    color: Option<[u8; 4]>,
    background: Option<[u8; 4]>,
}

/// The style that an element passes on to those in it, which may change it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inherited {
    /// The color of the background, if it is known.
    background: Option<[u8; 4]>,
    color: Option<[u8; 4]>,
    is_tiny: bool,
    is_invisible: bool,
}

impl Inherited {
    /// Whether a reader cannot see a text here.
    pub(super) fn hides_text(&self) -> bool {
        let of_color = self.color.is_some_and(|color| {
            color[3] == 0 || self.background.is_some_and(|background| near(color, background))
        });
        of_color || self.is_tiny || self.is_invisible
    }
}

/// A rule: a simple selector and its effect.
struct StyleRule {
    tag: Option<String>,
    id: Option<String>,
    classes: Vec<String>,
    effect: Effect,
}

/// The rules of a page.
#[derive(Default)]
pub(super) struct Styles {
    rules: Vec<StyleRule>,
    /// The positions of rules by an id (`#a`), a class (`.a`) or the name of an element; those of all
    /// elements are at `*`.
    places: HashMap<String, Vec<usize>>,
    bytes: usize,
    /// Whether the colors of the page may come from a style sheet that is not read.
    pub(super) has_foreign: bool,
}

impl Styles {
    /// Reads the text of a style sheet. Rules for other media, and selectors that name more than one
    /// element, are passed over.
    pub(super) fn read(&mut self, sheet: &str) {
        let room = MOST_BYTES.saturating_sub(self.bytes);
        self.bytes += sheet.len();
        let end = sheet.floor_char_boundary(room);
        let sheet = without_comments(sheet.get(..end).unwrap_or_default());
        let mut rest = sheet.as_str();
        while let Some((head, after)) = rest.split_once('{') {
            // A statement such as `@import` may precede.
            let head = head.rsplit(';').next().unwrap_or_default().trim();
            if head.starts_with('@') {
                rest = after_block(after);
                continue;
            }
            let (block, after) = after.split_once('}').unwrap_or((after, ""));
            rest = after;
            let effect = Effect::of(block);
            if effect == Effect::default() || self.rules.len() >= MOST_RULES {
                continue;
            }
            for rule in head.split(',').filter_map(|one| StyleRule::of(one.trim(), effect)) {
                self.places.entry(rule.key()).or_default().push(self.rules.len());
                self.rules.push(rule);
            }
        }
    }

    /// Whether an element hides all that is in it, and what it passes on.
    pub(super) fn look(&self, node: &Rc<Node>, around: Inherited) -> (bool, Inherited) {
        let NodeData::Element { attrs, .. } = &node.data else { return (false, around) };
        let attrs = attrs.borrow();
        let value = |name: &str| {
            let found = attrs.iter().find(|attribute| &*attribute.name.local == name);
            found.map(|attribute| attribute.value.trim())
        };
        let mut effect = Effect::default();
        let name = tag(node).unwrap_or_default();
        let (id, classes) = (value("id"), value("class").unwrap_or_default());
        // Of equal properties, the more specific selector wins, then the later one.
        let keys = id.map(|id| format!("#{id}")).into_iter();
        let of_classes = classes.split_ascii_whitespace().take(MOST_CLASSES);
        let keys = keys.chain(of_classes.map(|class| format!(".{class}")));
        let keys = keys.chain([name.to_owned(), "*".to_owned()]);
        let at: Vec<usize> = match self.rules.is_empty() {
            true => Vec::new(),
            false => keys.filter_map(|key| self.places.get(&key)).flatten().copied().collect(),
        };
        let mut rules: Vec<_> =
            at.iter().filter_map(|at| Some((*at, self.rules.get(*at)?))).collect();
        rules.sort_by_key(|(at, rule)| (rule.specificity(), *at));
        for (_, rule) in rules.iter().filter(|(_, rule)| rule.matches(name, id, classes)) {
            effect.add(rule.effect);
        }
        if let Some(style) = value("style") {
            let end = style.floor_char_boundary(MOST_STYLE);
            effect.add(Effect::of(style.get(..end).unwrap_or_default()));
        }
        if let ("font", Some(written)) = (name, value("color")) {
            effect.color = effect.color.or_else(|| color(written));
        }
        if let Some(written) = value("bgcolor") {
            effect.background = effect.background.or_else(|| color(written));
        }
        // A transparent background shows that of the element around.
        let own = effect.background.filter(|color| color[3] > 0);
        let passed = Inherited {
            background: own.or(around.background),
            color: effect.color.or(around.color),
            is_tiny: effect.size.unwrap_or(around.is_tiny),
            is_invisible: effect.visibility.unwrap_or(around.is_invisible),
        };
        (effect.hides(), passed)
    }

    /// The style of a page that declares nothing.
    pub(super) fn of_page(&self) -> Inherited {
        let background = (!self.has_foreign).then_some([255, 255, 255, 255]);
        Inherited { background, ..Inherited::default() }
    }
}

impl StyleRule {
    fn of(selector: &str, effect: Effect) -> Option<Self> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '#' | '-' | '_' | '*');
        if selector.is_empty() || !selector.chars().all(is_plain) {
            return None;
        }
        let mut rule = Self { tag: None, id: None, classes: Vec::new(), effect };
        let starts: Vec<_> = selector.match_indices(['.', '#']).map(|(at, _)| at).collect();
        let first = starts.first().copied().unwrap_or(selector.len());
        let element = selector.get(..first)?;
        if !element.is_empty() && element != "*" {
            rule.tag = Some(element.to_ascii_lowercase());
        }
        for (at, start) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(selector.len());
            let name = selector.get(start + 1..end)?.to_owned();
            match selector.as_bytes().get(*start)? {
                b'#' => rule.id = Some(name),
                _ => rule.classes.push(name),
            }
        }
        Some(rule)
    }

    /// The most selective part of the selector.
    fn key(&self) -> String {
        match (&self.id, self.classes.first(), &self.tag) {
            (Some(id), ..) => format!("#{id}"),
            (None, Some(class), _) => format!(".{class}"),
            (None, None, tag) => tag.clone().unwrap_or_else(|| "*".to_owned()),
        }
    }

    fn specificity(&self) -> usize {
        match (&self.id, self.classes.as_slice()) {
            (Some(_), _) => 2,
            (None, [_, ..]) => 1,
            (None, []) => 0,
        }
    }

    fn matches(&self, tag: &str, id: Option<&str>, classes: &str) -> bool {
        let has = |class: &String| classes.split_ascii_whitespace().any(|one| one == class);
        self.tag.as_deref().is_none_or(|own| own == tag)
            && self.id.as_deref().is_none_or(|own| Some(own) == id)
            && self.classes.iter().all(has)
    }
}

impl Effect {
    fn of(block: &str) -> Self {
        let mut effect = Self::default();
        for declaration in block.split(';') {
            let Some((name, value)) = declaration.split_once(':') else { continue };
            let value = value.replace("!important", "").trim().to_ascii_lowercase();
            let number = leading_number(&value);
            let is_zero = number == Some(0.0);
            match name.trim().to_ascii_lowercase().as_str() {
                "display" => effect.display = Some(value == "none"),
                "visibility" => {
                    effect.visibility = Some(matches!(value.as_str(), "hidden" | "collapse"));
                }
                "content-visibility" => effect.display = Some(value == "hidden"),
                "opacity" => effect.opacity = Some(number.is_some_and(|number| number < 0.05)),
                // Smaller than what a reader can make out.
                "font-size" => effect.size = is_tiny(&value, number),
                "width" | "height" | "max-width" | "max-height" if is_zero => {
                    effect.clip = Some(true);
                }
                "clip" | "clip-path" => effect.clip = Some(is_clipped(&value)),
                "left" | "right" | "top" | "bottom" | "margin-left" | "margin-top" => {
                    effect.place = Some(number.is_some_and(|number| number <= -500.0));
                }
                "text-indent" => {
                    effect.indent = Some(number.is_some_and(|number| number.abs() >= 500.0));
                }
                "transform" => {
                    let is_scaled = ["scale(0)", "scalex(0)", "scaley(0)", "scale(0,0)"]
                        .iter()
                        .any(|scaled| value.replace(' ', "").contains(scaled));
                    effect.scale = Some(is_scaled);
                }
                "color" => effect.color = color(&value).or(effect.color),
                "background" | "background-color" => {
                    let first = value.split_ascii_whitespace().next().unwrap_or_default();
                    let whole = color(&value).or_else(|| color(first));
                    effect.background = whole.or(effect.background);
                }
                _ => {}
            }
        }
        effect
    }

    fn add(&mut self, later: Self) {
        let Self {
            display,
            visibility,
            opacity,
            size,
            clip,
            place,
            indent,
            scale,
            color,
            background,
        } = later;
        self.display = display.or(self.display);
        self.visibility = visibility.or(self.visibility);
        self.opacity = opacity.or(self.opacity);
        self.size = size.or(self.size);
        self.clip = clip.or(self.clip);
        self.place = place.or(self.place);
        self.indent = indent.or(self.indent);
        self.scale = scale.or(self.scale);
        self.color = color.or(self.color);
        self.background = background.or(self.background);
    }

    /// Whether nothing in the element can be seen.
    fn hides(&self) -> bool {
        let all = [self.display, self.opacity, self.clip, self.place, self.indent, self.scale];
        all.contains(&Some(true))
    }
}

fn without_comments(sheet: &str) -> String {
    let mut clean = String::with_capacity(sheet.len());
    let mut rest = sheet;
    while let Some((before, after)) = rest.split_once("/*") {
        clean.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    clean.push_str(rest);
    clean
}

/// The text after the block whose `{` was read.
fn after_block(text: &str) -> &str {
    let mut depth = 1_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(at + 1..).unwrap_or_default();
        }
    }
    ""
}

fn leading_number(value: &str) -> Option<f64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let end = value.find(|c| !is_part(c)).unwrap_or(value.len());
    value.get(..end)?.parse().ok()
}

/// Whether a size of text cannot be read; `None` if that depends on the size around it.
fn is_tiny(value: &str, number: Option<f64>) -> Option<bool> {
    let Some(number) = number else { return Some(false) };
    if let Some(share) = value.strip_suffix('%').map(|_| number / 100.0) {
        return (share < 0.1).then_some(true);
    }
    if value.ends_with("em") && !value.ends_with("rem") {
        return (number < 0.1).then_some(true);
    }
    Some(number < if value.ends_with("rem") { 0.1 } else { 1.1 })
}

fn is_clipped(value: &str) -> bool {
    let value = value.replace(' ', "");
    let nothing = [
        "rect(0,0,0,0)",
        "rect(0000)",
        "rect(0px,0px,0px,0px)",
        "rect(1px,1px,1px,1px)",
        "inset(100%)",
        "inset(50%)",
        "circle(0)",
        "circle(0px)",
        "circle(0%)",
    ];
    nothing.contains(&value.as_str())
}

/// A color as red, green, blue and opacity.
fn color(text: &str) -> Option<[u8; 4]> {
    let text = text.trim().to_ascii_lowercase();
    let named = match text.as_str() {
        "transparent" => [0, 0, 0, 0],
        "white" => [255, 255, 255, 255],
        "black" => [0, 0, 0, 255],
        "red" => [255, 0, 0, 255],
        "blue" => [0, 0, 255, 255],
        "green" => [0, 128, 0, 255],
        "yellow" => [255, 255, 0, 255],
        "gray" | "grey" => [128, 128, 128, 255],
        "silver" => [192, 192, 192, 255],
        "snow" => [255, 250, 250, 255],
        "ivory" => [255, 255, 240, 255],
        "whitesmoke" => [245, 245, 245, 255],
        "ghostwhite" => [248, 248, 255, 255],
        _ => return of_digits(&text).or_else(|| of_function(&text)),
    };
    Some(named)
}

fn of_digits(text: &str) -> Option<[u8; 4]> {
    let digits = text.strip_prefix('#')?;
    let parse = |part: &str| u8::from_str_radix(part, 16).ok();
    let doubled: String;
    let digits = match digits.len() {
        3 | 4 => {
            doubled = digits.chars().flat_map(|c| [c, c]).collect();
            &doubled
        }
        _ => digits,
    };
    let part = |at: usize| digits.get(2 * at..2 * at + 2).and_then(parse);
    let alpha = if digits.len() == 8 { part(3)? } else { 255 };
    (digits.len() == 6 || digits.len() == 8).then_some([part(0)?, part(1)?, part(2)?, alpha])
}

fn of_function(text: &str) -> Option<[u8; 4]> {
    let (name, inside) = text.split_once('(')?;
    if !matches!(name, "rgb" | "rgba") {
        return None;
    }
    let inside = inside.strip_suffix(')')?.replace([',', '/'], " ");
    let mut parts = inside.split_ascii_whitespace();
    let mut part = || parts.next()?.parse::<u8>().ok();
    let (red, green, blue) = (part()?, part()?, part()?);
    let is_clear = parts.next().and_then(leading_number).is_some_and(|alpha| alpha < 0.05);
    Some([red, green, blue, if is_clear { 0 } else { 255 }])
}

/// Whether a reader cannot tell two colors apart.
fn near(a: [u8; 4], b: [u8; 4]) -> bool {
    const LEAST_DIFFERENCE: u8 = 12;
    a.iter().zip(b).take(3).all(|(a, b)| a.abs_diff(b) < LEAST_DIFFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_that_hide_are_told_from_others() {
        for hidden in [
            "display:none",
            "DISPLAY : none !important",
            "visibility: hidden",
            "opacity:0",
            "opacity: 0.01",
            "font-size:0",
            "font-size: 0px",
            "font-size: 1px",
            "font-size:0.01em",
            "position:absolute;left:-9999px",
            "text-indent:-9999px",
            "clip: rect(0, 0, 0, 0)",
            "clip-path: inset(100%)",
            "transform: scale(0)",
            "width:0;overflow:hidden",
        ] {
            let effect = Effect::of(hidden);
            let hides_text = effect.size == Some(true) || effect.visibility == Some(true);
            assert!(effect.hides() || hides_text, "{hidden}");
        }
        for shown in [
            "display:block",
            "opacity:1",
            "font-size:12px",
            "font-size:0.8em",
            "left:-10px",
            "text-indent:2em",
            "clip:auto",
            "width:100%",
            "display:none;display:block",
        ] {
            let effect = Effect::of(shown);
            assert!(!effect.hides() && effect.size != Some(true), "{shown}");
        }
    }
}
