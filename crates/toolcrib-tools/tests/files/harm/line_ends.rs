//! Line ends, encodings and byte order marks of files that are changed.

use std::fs;

use proptest::prelude::*;
use serde_json::json;

use crate::{
    Notes,
    as_shown::{engine, one, patch, read, write},
};

#[tokio::test]
async fn a_file_of_windows_could_be_patched_only_line_by_line() {
    let text = "one\r\n\ttwo\r\nthree\r\n\x0cfour\r\nfive";
    for (old, new, expected) in [
        ("one\n\ttwo\n", "ONE\n\tTWO\n", "ONE\r\n\tTWO\r\nthree\r\n\x0cfour\r\nfive"),
        ("one\r\n\ttwo\r\n", "ONE\n\tTWO\n", "ONE\r\n\tTWO\r\nthree\r\n\x0cfour\r\nfive"),
        ("two", "a\nb", "one\r\n\ta\r\nb\r\nthree\r\n\x0cfour\r\nfive"),
        ("\nthree", "", "one\r\n\ttwo\r\n\x0cfour\r\nfive"),
        ("three\n", "", "one\r\n\ttwo\r\n\x0cfour\r\nfive"),
        ("\x0cfour\nfive", "4\r5\n", "one\r\n\ttwo\r\nthree\r\n4\r\n5\r\n"),
        ("three\n\x0cfour", "x", "one\r\n\ttwo\r\nx\r\nfive"),
    ] {
        let notes = Notes::new(&[("a.txt", text)]);
        let engine = engine(&notes, &["hunter22-of-all"]);
        let about = "a.txt: lines 1 to 5 of 5; its line ends are CR LF";
        assert!(read(&engine, "a.txt").await.starts_with(about));
        let patched = patch(&engine, "a.txt", old, new).await;
        assert!(patched.is_ok(), "{old:?}: {}", patched.value);
        assert_eq!(notes.get("a.txt"), expected, "{old:?}");
    }
}

#[tokio::test]
async fn a_patch_keeps_lone_carriage_returns_and_the_line_ends_around_in_a_mixed_file() {
    for (text, old, new, expected) in [
        ("a\rb\rc\r", "a\nb", "x\ny\nz", "x\ry\rz\rc\r"),
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nx\nb\nc\n", "a\r\nx\r\nb\nc\r\n"),
        ("a\r\nb\nc\r\nd\n", "b", "x\ny", "a\r\nx\ny\nc\r\nd\n"),
        ("a\nb\r\nc", "c", "x\ny", "a\nb\r\nx\r\ny"),
        ("10%\r20%\ndone\n", "20%\ndone", "30%\nend", "10%\r30%\nend\n"),
        ("one", "one", "a\r\nb\nc", "a\r\nb\r\nc"),
    ] {
        let notes = Notes::new(&[("a", text)]);
        let engine = engine(&notes, &[]);
        read(&engine, "a").await;
        let patched = patch(&engine, "a", old, new).await;
        assert!(patched.is_ok(), "{text:?}: {}", patched.value);
        assert_eq!(notes.get("a"), expected, "{text:?}");
    }
    let notes = Notes::new(&[("a", "a\r\nb\na\nb\r\n"), ("b", "x\r\ny\r\n")]);
    let engine = engine(&notes, &[]);
    read(&engine, "a").await;
    read(&engine, "b").await;
    let several = patch(&engine, "a", "a\nb", "x").await;
    assert!(several.value.contains("occurs 2 times, at the lines 1, 3"), "{}", several.value);
    // Carriage returns say which one is meant.
    assert!(patch(&engine, "a", "a\r\nb", "x").await.is_ok());
    assert_eq!(notes.get("a"), "x\na\nb\r\n");
    let same = patch(&engine, "b", "x\r\ny", "x\ny").await;
    assert!(same.value.contains("the same but for line ends"), "{}", same.value);
    assert_eq!(notes.get("b"), "x\r\ny\r\n");
}

#[tokio::test]
async fn a_whole_write_over_a_file_of_windows_spoke_of_a_secret() {
    for (before, content, after, about) in [
        ("a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n", "; its line ends are CR LF, as before"),
        ("a\rb\r", "x\ny\n", "x\ry\r", "; its line ends are CR, as before"),
        ("a\r\nb\r\n", "x\r\ny\n", "x\r\ny\n", "; its line ends are mixed"),
        ("a\nb\n", "x\r\ny\r\n", "x\r\ny\r\n", "; its line ends were LF and are CR LF now"),
        ("a\r\nb\n", "x\ny\n", "x\ny\n", "; its line ends were mixed and are LF now"),
        ("a\nb\n", "x\ny", "x\ny", ""),
        ("a\r\nb\r\n", "x", "x", ""),
    ] {
        let notes = Notes::new(&[("a", before)]);
        let engine = engine(&notes, &["hunter22-of-all"]);
        read(&engine, "a").await;
        let written = write(&engine, "a", content).await;
        assert_eq!(&*written.value, format!("replaced a ({} bytes){about}", after.len()));
        assert_eq!(notes.get("a"), after);
        // Over what the same conversation has written, too.
        assert!(write(&engine, "a", content).await.is_ok());
        assert_eq!(notes.get("a"), after);
        let created = write(&engine, "new", "x\r\ny\n").await;
        assert_eq!(&*created.value, "created new (5 bytes); its line ends are mixed");
    }
}

type Form<'a> = &'a dyn Fn(&str) -> Vec<u8>;

#[tokio::test]
async fn byte_order_marks_and_utf_16_stay() {
    let text = "one \u{1f600}\r\ntwo\r\n";
    let wide = |text: &str, big: bool| -> Vec<u8> {
        let units = [0xfeff].into_iter().chain(text.encode_utf16().collect::<Vec<_>>());
        let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        units.flat_map(bytes).collect()
    };
    let forms: [Form<'_>; 3] =
        [&|text| format!("\u{feff}{text}").into_bytes(), &|text| wide(text, false), &|text| {
            wide(text, true)
        }];
    for form in forms {
        let notes = Notes::new(&[]);
        notes.put("a", form(text));
        let engine = engine(&notes, &["hunter22-of-all"]);
        read(&engine, "a").await;
        let patched = patch(&engine, "a", "one \u{1f600}\ntwo", "1\n\u{e9}").await;
        assert!(patched.is_ok(), "{}", patched.value);
        assert_eq!(fs::read(notes.path("a")).unwrap(), form("1\r\n\u{e9}\r\n"));
        let written = write(&engine, "a", "x\ny\n").await;
        assert!(written.is_ok(), "{}", written.value);
        assert_eq!(fs::read(notes.path("a")).unwrap(), form("x\r\ny\r\n"));
        notes.put("secret", form("key hunter22-of-all\r\n"));
        read(&engine, "secret").await;
        let refused = write(&engine, "secret", "key x\n").await;
        assert!(refused.value.contains("contains a secret"), "{}", refused.value);
    }
}

proptest! {
    /// Whatever a patch does to a file with one kind of line ends, it has that kind afterwards.
    #[test]
    fn no_patch_mixes_the_line_ends_of_a_file(
        lines in prop::collection::vec("[ab]{0,2}", 2..6),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        old in "[ab]{0,1}(\n|\r\n)?[ab]{1,2}(\n|\r\n)?",
        new in "[abc\n]{0,3}\r?\n?[c\n]{0,3}",
        all in any::<bool>(),
    ) {
        let text = lines.join(end);
        let notes = Notes::new(&[("a", &text)]);
        let engine = engine(&notes, &[]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let is_ok = runtime.block_on(async {
            read(&engine, "a").await;
            let edits = json!([{ "old": old, "new": new, "all": all }]);
            let args = json!({ "path": "a", "edits": edits });
            one(&engine, "patch_file", args).await.is_ok()
        });
        let normal = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
        let after = notes.get("a");
        prop_assert_eq!(normal(&after).replace('\n', end), after.clone());
        let places = normal(&text).matches(&normal(&old)).count();
        if is_ok && all {
            prop_assert_eq!(normal(&after), normal(&text).replace(&normal(&old), &normal(&new)));
        } else if !is_ok {
            prop_assert_eq!(after, text);
            prop_assert!(places == 0 || (!all && places > 0) || normal(&old) == normal(&new));
        }
    }
}
