//! The table as a picture.

use super::{
    results::{Counts, Results, percentage},
    systems::SYSTEMS,
};

/// In pixels.
const WIDTH: u64 = 840;
const LABELS: u64 = 250;
const BARS: u64 = 380;
const LINE: u64 = 30;
const TOP: u64 = 58;

/// The bar of each measured row without keys: the share of repeated effects, and of those that the
/// model was told are unknown.
pub(super) fn of(results: &Results) -> String {
    let rows: Vec<(&str, &Counts)> = SYSTEMS
        .iter()
        .filter(|system| !system.is_keyed)
        .filter_map(|system| Some((system.shown, results.of(system.name)?.1)))
        .collect();
    let share = |part: u64, counts: &Counts| part as f64 / counts.effects.max(1) as f64;
    let most = rows
        .iter()
        .map(|(_, counts)| share(counts.repeated + counts.unknown, counts))
        .fold(0.01, f64::max);
    let length = |part: f64| (part / most * BARS as f64).round() as u64;
    let height = TOP + LINE * rows.len() as u64 + 12;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">
<title>Effects that were repeated when their process was killed</title>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text x="12" y="22" font-size="15" font-weight="bold" fill="#222222">Effects that happened again after a kill, at an API without idempotency keys</text>
<rect x="12" y="33" width="12" height="12" fill="#c0392b"/><text x="30" y="44" fill="#222222">repeated</text>
<rect x="112" y="33" width="12" height="12" fill="#b8c4cf"/><text x="130" y="44" fill="#222222">not repeated: the model was told that the outcome is unknown</text>
"##
    );
    for (number, (shown, counts)) in rows.iter().enumerate() {
        let top = TOP + LINE * number as u64;
        let middle = top + 19;
        let (repeated, unknown) =
            (length(share(counts.repeated, counts)), length(share(counts.unknown, counts)));
        let mut words = format!("{} repeated", percentage(counts.repeated, counts.effects));
        if counts.unknown > 0 {
            words.push_str(&format!(", {} unknown", percentage(counts.unknown, counts.effects)));
        }
        let (end, words_at) = (LABELS + repeated, LABELS + repeated + unknown + 8);
        svg.push_str(&format!(
            r##"<text x="{}" y="{middle}" text-anchor="end" fill="#222222">{shown}</text>
<rect x="{LABELS}" y="{}" width="{repeated}" height="18" fill="#c0392b"/><rect x="{end}" y="{}" width="{unknown}" height="18" fill="#b8c4cf"/>
<text x="{words_at}" y="{middle}" fill="#222222">{words}</text>
"##,
            LABELS - 10,
            top + 5,
            top + 5,
        ));
    }
    svg.push_str("</svg>\n");
    svg
}
