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
//! | Who is outside? | [`Model`], [`Approver`], [`Middleware`], [`CapabilityGranter`], [`Secrets`], [`Journal`], [`Reducer`], [`ArtifactPort`], [`ArtifactStore`], [`SessionStore`], [`ApprovalStore`], [`KvStore`] |

mod agent_task;
mod approval;
mod artifact;
mod attachment;
mod availability;
mod block;
mod capabilities;
mod catalog;
mod chance;
mod clarification;
mod client_port;
mod context;
mod context_list;
mod counted;
mod credentials;
mod definition;
mod depth;
mod digest;
mod event;
mod extract;
mod fence;
mod file_reads;
mod fitted_name;
mod hidden;
mod identity;
mod image;
mod json;
mod kv;
mod lanes;
mod listing_info;
mod lru_cache;
mod mcp_names;
mod menu;
mod message;
mod middleware;
mod missing_reason;
mod model;
mod name;
mod network_rules;
mod output;
mod panic_text;
mod policy;
mod ports;
mod progress_pace;
mod provider;
mod registry;
mod reliability;
mod remote_listing;
mod result;
mod sanitize;
#[cfg(feature = "schema")]
mod schema;
mod secrets;
mod sent_parts;
mod session;
mod shortened;
mod signals;
mod single_flight;
mod subschemas;
mod suggest;
mod text_origin;
mod tool;
mod turn_info;
mod usage;
mod usage_entry;
mod violations;
mod wide_integers;
mod withheld_tool;

#[cfg(feature = "tracing")]
pub use self::event::SpanLink;
pub use self::{
    agent_task::{AgentTask, Delegate, DelegateHandle},
    approval::{
        Approval, ApprovalGrant, ApprovalRequest, ApprovalState, ApprovalStore, ApprovalStoreError,
        Approver, ArgumentPart, NotStorableError, ParkedCall, SecretReference, Settlement,
        StoredApproval, StoredArguments, call_approver,
    },
    artifact::{
        ArtifactCall, ArtifactEntry, ArtifactLog, ArtifactMeta, ArtifactPort, ArtifactReader,
        ArtifactStore, ArtifactStoreError, CommitError, LineIndex, OnConflict, StoreWriter,
        StoredBytes, StoredResult,
    },
    attachment::{Attachment, AttachmentError, Attachments},
    availability::IntoAvailability,
    block::{BlockFields, ContentBlock},
    capabilities::Capabilities,
    catalog::{Catalog, Reason, WithheldByProvider},
    clarification::{Clarification, ClarificationOutcome, Clarifier},
    client_port::{ClientAbilities, ClientHandle, ClientPort, ClientRefusal},
    context::{
        Audience, Progress, ProgressCount, ProgressSink, RunningWork, ToolContext, ToolContextParts,
    },
    context_list::ListContext,
    definition::{
        Annotations, ArtifactPolicy, InvalidToolError, Lifetime, OnCollision, ToolDefinition,
    },
    digest::{Digest, DigestHasher, InvalidDigestError, args_digest},
    event::{
        ActivatedBy, ChannelAdapter, DeactivatedBy, Event, EventKind, EventStream, Events,
        PolicyStage, StageBytes, Subscription, TurnEvents, UnknownEventError,
    },
    extract::{Args, Json, State},
    fence::{FENCE_NOTICE, fence, unfence},
    file_reads::{FileRead, FileReads},
    identity::Identity,
    image::{
        ImageInfo, ImageLimits, ImageNotice, ImageRefusal, ImageSupport, InvalidImageError,
        JudgedImages,
    },
    kv::{Kv, KvArea, KvError, KvLimits, KvScope, KvStore, KvWrite},
    lanes::Lanes,
    listing_info::{CacheStatus, ListingInfo},
    menu::Menu,
    message::{Arguments, CALL_TOOL, Message, SEARCH_TOOLS, ToolCall, Usage, VendorContent},
    middleware::{CallDecision, HookResult, Middleware, TurnContext, call_middleware},
    missing_reason::MissingReason,
    model::{
        Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse, ModelStream,
        StopReason, ToolChoice,
    },
    name::{BlankSkillIdError, InvalidToolNameError, MAX_TOOL_NAME, SkillId, ToolName},
    network_rules::NetworkRules,
    output::{ErrorCode, IntoToolOutput, ToolError, ToolOutput, err, ok},
    policy::{
        AnnotationMatch, ArgumentMatch, Effect, Fact, Glob, InvalidArgumentMatchError,
        InvalidClaimError, IterationRange, NotAGateError, Policy, PolicyDefault, PolicyFacts,
        RoleHolders, Roles, Rule, RuleConditions, RuleMatch, ToolMatch,
    },
    ports::{CapabilityGranter, Journal, PendingCall, Reducer, ReducerContext},
    provider::{
        CacheOptions, Cached, CatalogRequest, Discovery, DiscoveryError, DiscoveryErrorClass,
        GateDecision, IdentityScope, IntoCatalog, IntoGateDecision, IntoPreparation, KeyField,
        Listing, PerIdentity, Preparation, ToolHub, ToolProvider, ToolRewrite, Ttl, cached, concat,
        discovery, discovery_fn, from_async_fn, from_fn, gated_tools, per_identity, prefixed,
        prepared, skill_scoped_tools, static_tools, with_timeout,
    },
    registry::{AlreadyRegisteredError, RegistryDiff, ToolRegistry},
    reliability::{
        AnswerFn, Breaker, BreakerConfig, BreakerOpenError, BreakerState, FailureConditions,
        Fallback, IntoCondition, InvalidStatusRangeError, Permit, ReliabilityAction,
        ReliabilityRule, ReliabilityState, Retry, Stage, StatusRange, UnknownWordError,
    },
    remote_listing::{
        DefinitionCheck, DefinitionPins, ListOrder, PinKind, PinRefusal, PinnedDefinition,
        RemoteDefinition, RemoteListing,
    },
    result::{CallPlan, ToolResult},
    sanitize::{ChangeKind, ShownText, TextChange, harmless},
    secrets::{Redact, RedactStream, Secret, SecretError, Secrets, secrets_fn},
    sent_parts::{SentPart, SentParts},
    session::{
        CallIntent, CallOutcome, FoundMessage, MAX_SESSION_NAME, NewSession, SessionHistory,
        SessionInfo, SessionLease, SessionOwner, SessionRecord, SessionRetention, SessionSearch,
        SessionStore, SessionStoreError, StoreId, StoredCall, StoredMessage, StoredRun,
        StoredSession, StoredTurn, TracedEvent, TurnState, is_session_id, is_session_name,
    },
    signals::{AckSubscription, AlreadySignaledError, Signal, TurnSignals},
    text_origin::TextOrigin,
    tool::{IntoTool, Tool, ToolBody, ToolBuilder},
    turn_info::{MemoryScope, TurnInfo},
    usage::{BudgetUse, Price, PricedModel, StoredUsage, UsageStore},
    usage_entry::{UsageEntry, UsageSource},
    violations::StoreViolations,
    wide_integers::changes_integers,
    withheld_tool::{WithheldBy, WithheldTool},
};
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
    pub use crate::event::RequestSpan;
    #[cfg(feature = "schema")]
    pub use crate::schema::{
        AcceptedTypes, CompiledSchema, JsonType, ValueStep, check_schema, check_schema_work,
        check_uncompiled, leave_foreign_patterns, must_be_compiled,
    };
    pub use crate::{
        catalog::CatalogBuilder,
        chance::random_share,
        counted::counted,
        credentials::may_contain_credential,
        depth::{DEEPEST_ARGUMENTS, DEEPEST_JSON, dismantle, nests_deeper_than, nests_too_deep},
        event::{millis, now_ms},
        fence::fence_chars,
        hidden::{is_hidden, is_invisible, is_needed, marked, plain_letter},
        image::image_type,
        json::{
            MOST_VALUES, PlainJson, has_more_values, has_reserved_key, is_reserved_key, json_kind,
            scan_json,
        },
        listing_info::time_left,
        lru_cache::LruCache,
        mcp_names::{MCP_OWN_NAME, is_mcp_name, is_mcp_toolset},
        panic_text::panic_text,
        policy::BoundPolicy,
        progress_pace::ProgressPace,
        provider::{ListingKey, ListingStore, StoredListing, list_in_order, may_have, of_plugin},
        reliability::{Backoff, BreakerChange},
        remote_listing::composed,
        sanitize::{is_plain, padding, without_invisible},
        shortened::{beginning, shortened},
        single_flight::{Flight, SingleFlight},
        subschemas::{Subschemas, may_describe_elsewhere, subschemas},
        suggest::nearest,
    };
}
