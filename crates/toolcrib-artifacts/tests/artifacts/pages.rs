//! Pages of items, compared with the simplest implementation.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use toolcrib_artifacts::{
    Answer, ArtifactKind, ArtifactLimits, ArtifactSource, Artifacts, Items, MemoryStore, Page,
    Query, QueryRequest,
};
use toolcrib_core::ToolError;

use crate::support::{ask_within, body, cursor, keep, turn, turn_of};

/// The items of the first page, and the start of the next one.
fn expected(items: &[String], limit: usize, room: usize) -> (String, Option<u64>) {
    let mut shown: Vec<String> = Vec::new();
    for (position, item) in items.iter().enumerate() {
        let (mut item, chars) = (item.clone(), item.chars().count());
        if shown.is_empty() && chars > room {
            let marker = format!("… [cut: {chars} chars]");
            item = item.chars().take(room - marker.chars().count()).collect::<String>() + &marker;
        }
        shown.push(item);
        if shown.len() > limit || shown.join("\n").chars().count() > room {
            shown.pop();
            return (shown.join("\n"), Some(position as u64));
        }
    }
    (shown.join("\n"), None)
}

proptest! {
    #[test]
    fn a_page_has_as_many_items_as_there_is_room_for(
        items in prop::collection::vec("[aé]{0,3}|[aé]{5,60}", 0..30),
        limit in 0_u64..25,
        chars in 0_usize..340,
    ) {
        let page = Page::first(chars);
        let mut filled = Items::new(page, limit);
        items.iter().for_each(|item| filled.push(item));
        let (text, next) = expected(&items, limit as usize, page.room());
        prop_assert_eq!(filled.is_full(), next.is_some());
        prop_assert_eq!(filled.wants_next(), next.is_none());
        let shown = filled.shown();
        prop_assert_eq!(shown, next.unwrap_or(items.len() as u64));
        let status = next.filter(|_| shown > 0).map(|_| format!("items 1-{shown}"));
        prop_assert_eq!(filled.answer("items"), Answer { text, status, next });
    }
}

/// The lines of an artifact as items.
struct LinesAsItems;

impl ArtifactKind for LinesAsItems {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn queries(&self) -> Vec<Query> {
        vec![Query::new("all", "All lines.")]
    }

    fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        let mut items = Items::new(asked.page, 3);
        let mut lines = asked.content.lines_from(0)?;
        while let Some(line) = lines.next(100)? {
            items.push(&line.text());
        }
        Ok(items.answer("lines"))
    }
}

#[test]
fn each_page_says_what_it_shows() {
    let kinds: Vec<Arc<dyn ArtifactKind>> = vec![Arc::new(LinesAsItems)];
    let store = Arc::new(MemoryStore::new());
    let turn = turn_of(&Artifacts::with(store, kinds, ArtifactLimits::default()), "c1");
    turn.keep(ArtifactSource::of("t", "call").kind("lines"), b"a\nb\nc\nd\ne\nf\ng").unwrap();
    let mut args = json!({ "id": "call", "query": "all" });
    let mut said = Vec::new();
    loop {
        let answer = ask_within(&turn, "artifact_query", args.clone(), 500).unwrap();
        let (text, status) = answer.rsplit_once('\n').unwrap();
        said.push((text.to_owned(), status.split(';').next().unwrap().to_owned()));
        let Some(cursor) = cursor(&answer) else { break };
        args["cursor"] = json!(cursor);
    }
    let said: Vec<_> = said.iter().map(|(text, status)| (&**text, &**status)).collect();
    assert_eq!(said, [("a\nb\nc", "[lines 1-3"), ("d\ne\nf", "[lines 4-6"), ("g", "[lines 7-7]")]);
}

#[test]
fn a_page_has_room_for_characters_whatever_their_bytes() {
    let shown = |part: &[u8]| {
        let turn = turn();
        // The last line is too short to end the page.
        keep(&turn, [b"a\n", &*part.repeat(2_000)].concat());
        let answer = ask_within(&turn, "artifact_read", json!({ "id": "call" }), 600).unwrap();
        body(&answer).chars().count()
    };
    let room = shown(b"x");
    assert!(room > 200);
    assert_eq!(shown("\u{1d11e}".as_bytes()), room);
    assert_eq!(shown(b"ab\xff"), room);
    // Not even invalid bytes of the size of a character.
    assert_eq!(shown(b"\xf0\x9d\x84"), room);
}

#[test]
fn a_page_has_as_many_rows_of_a_dump_as_there_is_room_for() {
    let (text, binary) = (turn(), turn());
    keep(&text, "x".repeat(2_000));
    keep(&binary, vec![0; 2_000]);
    for budget in 500..600 {
        let read =
            |turn| ask_within(turn, "artifact_read", json!({ "id": "call" }), budget).unwrap();
        let (room, dump) = (body(&read(&text)).len(), read(&binary));
        let rows: Vec<_> = body(&dump).lines().collect();
        let row = rows[0].len() + 1;
        assert_eq!(rows.len(), (room + 1) / row, "{budget}");
    }
}
