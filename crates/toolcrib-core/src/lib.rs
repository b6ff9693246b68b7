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
//! | Who is outside? | [`Model`], [`Approver`], [`Scoper`], [`Journal`], [`Reducer`] |

mod catalog;
mod context;
mod context_list;
mod definition;
mod digest;
mod event;
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
mod tool;

pub use self::{
    catalog::{Catalog, HeldBack, Reason},
    context::{Audience, Progress, ToolContext, ToolContextParts},
    context_list::ListContext,
    definition::{Annotations, InvalidTool, OnCollision, ToolDefinition},
    digest::{Digest, args_digest, canonical_schema},
    event::{ActivatedBy, Event, EventKind, EventStream, Events, RunEvents, Subscription, millis},
    fence::{FENCE_NOTICE, fence, fence_chars, unfence},
    hidden::is_hidden,
    identity::Identity,
    menu::{Menu, NameCollision},
    message::{Arguments, Message, ToolCall, Usage},
    model::{
        Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse, ModelStream,
        ToolChoice,
    },
    name::{BlankSkillId, InvalidToolName, MAX_TOOL_NAME, SkillId, ToolName},
    output::{ErrorCode, IntoToolOutput, ToolError, ToolOutput},
    panic_text::panic_text,
    policy::{AnnotationMatch, Effect, Glob, Policy, PolicyDefault, Roles, Rule, ToolMatch, When},
    ports::{Approval, Approver, Journal, PendingCall, Reducer, Scoper},
    provider::{
        DiscoveryError, DiscoveryErrorClass, FailedListing, Gate, Handed, IntoVerdict, Listing,
        ToolProvider, Verdict, concat, gated_tools, list_in_order, skill_scoped_tools,
        static_tools,
    },
    registry::{AlreadyRegistered, ToolRegistry},
    result::ToolResult,
    tool::{Tool, ToolBody, ToolBuilder},
};
pub use tokio_util::sync::CancellationToken;
