//! The vocabulary of Toolcrib: what a tool, a provider, a menu, a call and its result are, and
//! the ports to the world. No I/O happens here.
//!
//! | question | types |
//! |---|---|
//! | What is a tool? | [`Tool`], [`ToolDefinition`], [`ToolBody`], [`ToolOutput`], [`ToolError`] |
//! | Where do tools come from? | [`ToolProvider`], [`ToolRegistry`], [`Catalog`], [`Listing`] |
//! | What may the model see? | [`Menu`], [`Policy`], [`Verdict`] |
//! | What does a running tool see? | [`ToolContext`] |
//! | What came back? | [`ToolResult`], [`ErrorCode`] |
//! | What happened? | [`Event`], [`Events`] |
//! | Who is outside? | [`Model`], [`Approver`], [`Middleware`], [`Scoper`], [`Secrets`], [`Journal`], [`Reducer`] |

mod block;
mod capabilities;
mod catalog;
mod context;
mod context_list;
mod definition;
mod depth;
mod digest;
mod event;
mod extract;
mod fence;
mod hidden;
mod identity;
mod menu;
mod message;
mod model;
mod name;
mod output;
mod panic_text;
mod policy;
mod ports;
mod provider;
mod registry;
mod result;
mod secrets;
mod tool;

pub use self::{
    block::ContentBlock,
    capabilities::Capabilities,
    catalog::{Catalog, HeldBack, Reason},
    context::{Audience, Progress, ToolContext, ToolContextParts},
    context_list::ListContext,
    definition::{Annotations, InvalidTool, Lifetime, OnCollision, ToolDefinition},
    depth::{DEEPEST_JSON, dismantle, nests_too_deep},
    digest::{Digest, args_digest, canonical_schema},
    event::{
        ActivatedBy, Event, EventKind, EventStream, Events, NotOffered, RunEvents, Subscription,
        millis,
    },
    extract::{Args, Json, State},
    fence::{FENCE_NOTICE, fence, fence_chars, unfence},
    hidden::is_hidden,
    identity::Identity,
    menu::{Menu, NameCollision},
    message::{Arguments, Message, ToolCall, Usage, VendorContent},
    model::{
        Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse, ModelStream,
        StopReason, ToolChoice,
    },
    name::{BlankSkillId, InvalidToolName, MAX_TOOL_NAME, SkillId, ToolName},
    output::{ErrorCode, IntoToolOutput, ToolError, ToolOutput, err, ok},
    panic_text::panic_text,
    policy::{AnnotationMatch, Effect, Glob, Policy, PolicyDefault, Roles, Rule, ToolMatch, When},
    ports::{
        Approval, Approver, CallVerdict, Journal, Middleware, PendingCall, Reducer, Scoper,
        call_approver, call_middleware,
    },
    provider::{
        DiscoveryError, DiscoveryErrorClass, FailedListing, Gate, Handed, IntoVerdict, Listing,
        ToolProvider, Verdict, concat, gated_tools, list_in_order, of_plugin, skill_scoped_tools,
        static_tools,
    },
    registry::{AlreadyRegistered, ToolRegistry},
    result::ToolResult,
    secrets::{Redact, Secret, SecretError, Secrets, secrets_fn},
    tool::{IntoTool, Tool, ToolBody, ToolBuilder},
};
/// What the methods of the ports give back: a boxed future that is `Send`.
pub use futures_util::future::BoxFuture;
pub use tokio_util::sync::CancellationToken;
