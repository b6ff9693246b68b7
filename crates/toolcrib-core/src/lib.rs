//! The vocabulary of Toolcrib: what a tool, a provider, a menu, a call and its result are, and
//! the ports to the world. No I/O happens here.
//!
//! | question | types |
//! |---|---|
//! | What is a tool? | [`Tool`], [`ToolDefinition`], [`ToolBody`], [`ToolOutput`], [`ToolError`] |
//! | Where do tools come from? | [`ToolProvider`], [`ToolRegistry`], [`Catalog`], [`Listing`] |
//! | What may the model see? | [`Menu`], [`Policy`], [`Verdict`] |
//! | What ends a turn? | [`TurnSignals`], [`Signal`] |
//! | What does a running tool see? | [`ToolContext`] |
//! | What came back? | [`ToolResult`], [`ErrorCode`] |
//! | What becomes of a failure? | [`ReliabilityRule`], [`Retry`] |
//! | What happened? | [`Event`], [`Events`] |
//! | Who is outside? | [`Model`], [`Approver`], [`Middleware`], [`Scoper`], [`Secrets`], [`Journal`], [`Reducer`], [`Spooler`], [`SpoolStore`] |

mod answered;
mod availability;
mod block;
mod capabilities;
mod catalog;
mod chance;
mod context;
mod context_list;
mod definition;
mod depth;
mod digest;
mod event;
mod extract;
mod fence;
mod fitted_name;
mod hidden;
mod identity;
mod json;
mod menu;
mod message;
mod middleware;
mod model;
mod name;
mod network_rules;
mod output;
mod panic_text;
mod policy;
mod ports;
mod provider;
mod registry;
mod reliability;
mod remote_listing;
mod result;
mod sanitise;
mod secrets;
mod signals;
mod spool;
mod suggest;
mod tool;

pub use self::{
    answered::{Answered, CacheUse},
    availability::IntoAvailability,
    block::ContentBlock,
    capabilities::Capabilities,
    catalog::{Catalog, HeldBack, Reason},
    chance::random_share,
    context::{Audience, Progress, ProgressSink, ToolContext, ToolContextParts},
    context_list::ListContext,
    definition::{Annotations, InvalidTool, Lifetime, OnCollision, Spooling, ToolDefinition},
    depth::{DEEPEST_JSON, dismantle, nests_too_deep},
    digest::{Digest, DigestHasher, NotADigest, args_digest, canonical_schema},
    event::{
        ActivatedBy, DeactivatedBy, Event, EventKind, EventStream, Events, NotOffered, PolicyStage,
        RunEvents, Subscription, UnknownEventError, millis,
    },
    extract::{Args, Json, State},
    fence::{FENCE_NOTICE, fence, fence_chars, unfence},
    hidden::{is_hidden, plain_letter},
    identity::Identity,
    json::{PlainJson, has_reserved_key},
    menu::Menu,
    message::{Arguments, Message, ToolCall, Usage, VendorContent},
    middleware::{CallVerdict, Middleware, Passed, TurnContext, call_middleware},
    model::{
        Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse, ModelStream,
        StopReason, ToolChoice,
    },
    name::{BlankSkillId, InvalidToolName, MAX_TOOL_NAME, SkillId, ToolName},
    network_rules::NetworkRules,
    output::{ErrorCode, IntoToolOutput, ToolError, ToolOutput, err, ok},
    panic_text::panic_text,
    policy::{
        AnnotationMatch, ArgumentMatch, Effect, Fact, Glob, InSituation, InvalidArgumentMatch,
        IterationRange, MAX_PATTERN, MAX_SEARCHED, NotAGate, Policy, PolicyDefault, PolicyFacts,
        PolicyGate, RoleHolders, Roles, Rule, Ruling, ToolMatch, UnreadableClaim, When,
    },
    ports::{Approval, Approver, Journal, PendingCall, Reducer, Scoper, call_approver},
    provider::{
        CacheOptions, Cached, CatalogRequest, Discovery, DiscoveryError, DiscoveryErrorClass,
        FailedListing, Gate, Handed, IntoPrepared, IntoTools, IntoVerdict, KeyField, Listing,
        PerIdentity, Prepared, ToolHub, ToolProvider, ToolRewrite, Ttl, Verdict, Whose, cached,
        concat, discovery, from_async_fn, from_fn, gated_tools, list_in_order, of_plugin,
        per_identity, prefixed, prepared, skill_scoped_tools, static_tools, with_timeout,
    },
    registry::{AlreadyRegistered, RegistryDiff, ToolRegistry},
    reliability::{
        AnswerFn, Fallback, IntoHolds, InvalidStatusRange, ReliabilityRule, ReliabilityState,
        Retry, Stage, StatusRange, Then, UnknownWordError, WhenFailed,
    },
    remote_listing::{DefinitionCheck, ListOrder, RemoteDescription, RemoteListing},
    result::ToolResult,
    sanitise::{harmless, is_plain},
    secrets::{Redact, RedactStream, Secret, SecretError, Secrets, secrets_fn},
    signals::{AckSubscription, AlreadySignalled, Signal, TurnSignals},
    spool::{
        CommitError, INDEX_BLOCK, IfTaken, KeptEntries, KeptResult, LineIndex, SpoolEntry,
        SpoolError, SpoolNote, SpoolReader, SpoolStore, SpoolWriter, Spooled, SpooledCall, Spooler,
    },
    tool::{IntoTool, Tool, ToolBody, ToolBuilder},
};
/// What the methods of the ports give back: a boxed future that is `Send`.
pub use futures_util::future::BoxFuture;
pub use tokio_util::sync::CancellationToken;
