//! Errors in the options.
#![allow(unused, reason = "only what the compiler says of the mistakes counts")]

use toolcrib::tool;

/// Unknown.
#[tool(readonly)]
fn unknown() {}

/// Unknown, and like nothing.
#[tool(color = "red", read_only)]
fn unlike() {}

/// Twice.
#[tool(read_only, sequential, read_only)]
fn twice() {}

/// Contradicts itself.
#[tool(read_only, destructive)]
fn contradiction() {}

/// Badly named.
#[tool(name = "find order")]
fn named() {}

/// Many at once.
#[tool(name = "", description = " ", toolset, read_only = true, crate = "a b")]
fn many() {}

/// No text.
#[tool(name = find_order, toolset = 1)]
fn no_text() {}

/// Nonsense for a time.
#[tool(timeout = "soon")]
fn soon() {}

/// No time at all.
#[tool(timeout = "0s")]
fn at_once() {}

/// Longer than anybody waits.
#[tool(timeout = "2days")]
fn late() {}

/// A number for a time.
#[tool(timeout = 30)]
fn number() {}

/// No room.
#[tool(max_result_chars = 99)]
fn no_room() {}

/// No number.
#[tool(max_result_chars = "8000")]
fn no_number() {}

/// None of those.
#[tool(on_collision = "merge", ephemeral = "for_ever")]
fn none_of_those() {}

/// Needs it said how.
#[tool(on_collision)]
fn how() {}

/// No capability.
#[tool(capabilities(net = ["api.example.com"], process = "git", secrets = [""], secrets = []))]
fn capabilities() {}

/// Not a word's form.
#[tool(capabilities(person = true, storage(all), kv = ["turn"], optional_kv, attachment))]
fn forms() {}

/// Is a flag.
#[tool(person)]
fn flag() {}

/// Is a capability.
#[tool(secrets = ["WEATHER_KEY", "OTHER_KEY"])]
fn capability() {}

/// No list.
#[tool(capabilities)]
fn no_list() {}

/// Called.
#[tool(available_if = is_there())]
fn called() {}

/// No function.
#[tool(available_if = "is_there")]
fn no_function() {}

fn main() {}
