//! Who calls, and the names of tools and skills.

pub(crate) mod identity;
pub(crate) mod mcp_names;
pub(crate) mod name;
pub(crate) mod owner;
pub(crate) mod turn_info;

pub use self::{
    identity::Identity,
    name::{BlankSkillIdError, InvalidToolNameError, MAX_TOOL_NAME, SkillId, ToolName},
    owner::SessionOwner,
    turn_info::{MemoryScope, TurnInfo},
};
