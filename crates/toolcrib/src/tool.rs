//! ```
//! use toolcrib::{Tool, ToolContext, tool::InvalidToolError};
//!
//! let ping = Tool::builder("ping")
//!     .description("Answers `pong`.")
//!     .read_only()
//!     .handler(|_: serde_json::Value, _: ToolContext| async { "pong" })?;
//! assert!(ping.annotations().read_only);
//! # Ok::<(), InvalidToolError>(())
//! ```
//!
//! A tool: its definition, its body, the context and the output of one call, and the capabilities that
//! it declares. The attribute `#[tool]` makes one of a function. Tools go into an `Engine`, a
//! [`registry`](crate::registry) or a [`provider`](crate::provider).

#[doc(inline)]
pub use toolcrib_core::{
    AgentTask, Annotations, Args, Arguments, ArtifactPolicy, Attachment, Attachments, Audience,
    BlockFields, CallPlan, Capabilities, CapabilityGranter, Clarification, ClarificationOutcome,
    Clarifier, ContentBlock, Delegate, DelegateHandle, Digest, DigestHasher, ErrorCode, FileRead,
    FileReads, ImageInfo, IntoAvailability, IntoTool, IntoToolOutput, InvalidDigestError,
    InvalidImageError, InvalidToolError, InvalidToolNameError, Json, Kv, KvError, KvScope,
    Lifetime, MAX_TOOL_NAME, MemoryScope, NetworkRules, OnCollision, Progress, ProgressCount,
    ProgressSink, RunningWork, State, TextOrigin, Tool, ToolBody, ToolBuilder, ToolCall,
    ToolContext, ToolContextParts, ToolDefinition, ToolError, ToolName, ToolOutput, ToolResult,
    TurnInfo, args_digest, err, ok,
};
