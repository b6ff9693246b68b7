//! One engine, three doors: a library's own loop, the agent, and the gateway in both eras. What a
//! call comes to, and what is heard of it, is the same through each.

mod same;
mod through;
mod world;
