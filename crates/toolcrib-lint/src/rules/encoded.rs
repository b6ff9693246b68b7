//! Text that manipulates the model, in an encoding that a model decodes and a reviewer does not read.

use std::{borrow::Cow, sync::LazyLock};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use regex::Regex;

use super::instructions::manipulates;
use crate::{
    catalog::LintCatalog,
    report::{Finding, Findings},
};

/// Runs of digits of either encoding. Lines of a longer text are joined. A shorter run encodes fewer
/// than 18 characters, which say nothing.
static RUNS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]{4,})*").ok());

/// Base64 with any padding, and with the last bits of any value.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn instruction(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let Some(runs) = &*RUNS else { return };
    for tool in catalog.tools() {
        tool.each_text(|path, text| {
            for run in runs.find_iter(text) {
                let found = decoded(run.as_str())
                    .find_map(|(encoding, text)| Some((encoding, manipulates(&text)?)));
                let Some((encoding, (what, said))) = found else { continue };
                let message = format!(
                    "the `{path}` of {} contains {encoding} of a text that {what}: {said}",
                    tool.shown()
                );
                let help = "do not offer the tool; a description has no reason to hide its text";
                findings.push(Finding::error(message, help).of(tool).at(path.to_string()));
            }
        });
    }
}

/// The texts that a run may encode. It may begin with other text of the same characters, such as a
/// path, so that Base64 begins at any of four.
fn decoded(run: &str) -> impl Iterator<Item = (&'static str, String)> {
    let digits: String = run.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let hex = hex(&digits).map(|bytes| ("hexadecimal digits", bytes));
    let plain: Cow<'_, str> = match digits.contains(['-', '_']) {
        true => digits.replace('-', "+").replace('_', "/").into(),
        false => digits.into(),
    };
    let base64 = (0..4).filter_map(|start| {
        let rest = plain.get(start..)?;
        // One digit alone encodes nothing.
        let whole = rest.get(..rest.len() - usize::from(rest.len() % 4 == 1))?;
        Some(("Base64", LENIENT.decode(whole).ok()?))
    });
    let all: Vec<_> = hex.into_iter().chain(base64).collect();
    all.into_iter().filter_map(|(encoding, bytes)| Some((encoding, text_of(&bytes)?)))
}

/// The text of bytes that are mostly one: its surroundings may decode to anything.
fn text_of(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let odd = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    (odd * 4 < text.chars().count()).then(|| text.into_owned())
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}
