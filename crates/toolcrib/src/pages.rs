//! The Rust blocks of the README and of the pages in `docs/` compile and run.

#[doc = include_str!("../../../README.md")]
struct Readme;
#[doc = include_str!("../../../docs/library.md")]
struct Library;
#[doc = include_str!("../../../docs/models.md")]
struct Models;
#[doc = include_str!("../../../docs/protection.md")]
struct Protection;
#[doc = include_str!("../../../docs/providers.md")]
struct Providers;
#[doc = include_str!("../../../docs/files.md")]
struct Files;
#[doc = include_str!("../../../docs/openapi.md")]
struct OpenApi;
#[doc = include_str!("../../../docs/events.md")]
struct Events;
#[doc = include_str!("../../../docs/sessions.md")]
struct Sessions;
#[doc = include_str!("../../../docs/approvals.md")]
struct Approvals;
#[doc = include_str!("../../../docs/tool-search.md")]
struct ToolSearch;
