//! The vocabulary of Toolcrib: what a tool, a provider, a menu, a call and its result are, and
//! the ports to the world. No I/O happens here.
//!
//! | question | types |
//! |---|---|
//! | What is a tool? | [`Tool`], [`ToolDefinition`], [`ToolBody`], [`ToolOutput`], [`ToolError`] |
//! | Where do tools come from? | [`ToolProvider`], [`ToolRegistry`], [`Catalog`], [`Listing`] |
//! | What may the model see? | [`Menu`], [`Policy`], [`GateDecision`] |
//! | What ends a turn? | [`TurnSignals`], [`Signal`] |
//! | What does a running tool see? | [`ToolContext`] |
//! | What came back? | [`ToolResult`], [`ErrorCode`] |
//! | What becomes of a failure? | [`ReliabilityRule`], [`Retry`] |
//! | What happened? | [`Event`], [`Events`] |
//! | Who is outside? | [`Model`], [`Approver`], [`Middleware`], [`CapabilityGranter`], [`Secrets`], [`Journal`], [`Reducer`], [`ArtifactPort`], [`ArtifactStore`], [`SessionStore`], [`ApprovalStore`], [`KvStore`], or all as a [`Store`] |
//!
//! # Layers
//!
//! - `store`: all ports of storage in one.
//! - `event`: typed events.
//! - `reliability`: the handling of failures.
//! - `policy`: decisions by rules and by people.
//! - `middleware`: decisions in code, and the other ports of the pipe.
//! - `artifacts`: stored results.
//! - `sessions`: the state that outlives the process.
//! - `models`: the port of a model.
//! - `menu`: the tools that a model sees.
//! - `registry`: a list of tools that a turn edits.
//! - `turn`: the signals of a turn.
//! - `untrusted`: texts and lists of tools that another party wrote.
//! - `provider`: where tools come from.
//! - `tool`: a tool, its context and its output.
//! - `kv`: the store of small values, and of limits.
//! - `store_error`: the error of a store.
//! - `messages`: the messages of a conversation.
//! - `schema`: compiled JSON Schemas.
//! - `secrets`: secrets, and texts that may contain one.
//! - `text`: fences, invisible characters, suggestions.
//! - `names`: identities, and the names of tools and skills.
//! - `json`: JSON values, their limits and their digests.
//! - `internal`: small helpers.

pub mod artifacts;
pub mod event;
mod internal;
mod json;
mod kv;
pub mod menu;
pub mod messages;
pub mod middleware;
pub mod models;
pub mod names;
pub mod policy;
pub mod provider;
pub mod registry;
pub mod reliability;
#[cfg(feature = "schema")]
mod schema;
pub mod secrets;
pub mod sessions;
pub mod store;
mod store_error;
mod text;
pub mod tool;
pub mod turn;
pub mod untrusted;

#[doc(no_inline)]
pub use self::{
    artifacts::*, event::*, menu::*, messages::*, middleware::*, models::*, names::*, policy::*,
    provider::*, registry::*, reliability::*, secrets::*, sessions::*, store::*, tool::*, turn::*,
    untrusted::*,
};
pub use self::{internal::Lanes, json::changes_integers};
/// The result of a port's methods: a boxed future that is `Send`.
pub use futures_util::future::BoxFuture;
/// The trait of a [`ModelStream`].
pub use futures_util::stream::Stream;
pub use tokio_util::sync::CancellationToken;

/// Helpers that the crates of this workspace share. Not part of the public API: they may change in
/// any version.
#[doc(hidden)]
pub mod __internal {
    #[cfg(feature = "tracing")]
    pub use crate::event::spans::RequestSpan;
    #[cfg(feature = "schema")]
    pub use crate::schema::{
        AcceptedTypes, CompiledSchema, JsonType, ValueStep, check_schema, check_schema_work,
        check_uncompiled, leave_foreign_patterns, must_be_compiled,
    };
    pub use crate::{
        event::recorder::{millis, now_ms},
        internal::{
            chance::random_share,
            counted::counted,
            debug_fields::debug_fields,
            lru_cache::LruCache,
            panic_text::panic_text,
            progress_pace::ProgressPace,
            single_flight::{Flight, SingleFlight},
        },
        json::{
            depth::{
                DEEPEST_ARGUMENTS, DEEPEST_JSON, dismantle, nests_deeper_than, nests_too_deep,
            },
            subschemas::{Subschemas, may_describe_elsewhere, subschemas},
            value::{
                MOST_VALUES, PlainJson, has_more_values, has_reserved_key, is_reserved_key,
                json_kind, scan_json,
            },
        },
        messages::image::image_type,
        names::mcp_names::{MCP_OWN_NAME, is_mcp_name, is_mcp_toolset},
        policy::judge::BoundPolicy,
        provider::{
            cached::{ListingKey, ListingStore, StoredListing},
            catalog::CatalogBuilder,
            concat::list_in_order,
            covers::may_have,
            listing_info::time_left,
            of_plugin::of_plugin,
        },
        reliability::{backoff::Backoff, breaker::BreakerChange},
        secrets::credentials::may_contain_credential,
        text::{
            fence::fence_chars,
            hidden::{is_hidden, is_invisible, is_needed, marked, plain_letter},
            shortened::{beginning, shortened},
            suggest::{nearest, nearest_names, quoted},
        },
        untrusted::{
            remote_listing::composed,
            sanitize::{is_plain, padding, without_invisible},
        },
    };
}
