"""LangGraph: the agent of LangChain, whose graph is checkpointed by LangGraph in SQLite.

As https://docs.langchain.com/oss/python/langchain/human-in-the-loop and its pages on persistence and
durable execution recommend: a checkpointer, one thread for each run, `durability="sync"`, and the
middleware for approvals. The key is the id of the call, which the checkpoint contains.
"""

import asyncio

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

import stand_in


def effect(name: str):
    @tool(name, description=stand_in.DESCRIPTION)
    async def perform(order: str, runtime: ToolRuntime) -> str:
        return await stand_in.effect(name, order, runtime.tool_call_id)

    return perform


async def work() -> None:
    async with AsyncSqliteSaver.from_conn_string(stand_in.store("langgraph.db")) as saver:
        agent = create_agent(
            ChatOpenAI(model="stand-in", base_url=f"{stand_in.url()}/v1", api_key="none"),
            [effect(name) for name in stand_in.TOOLS],
            middleware=[HumanInTheLoopMiddleware(interrupt_on={"refund": True})],
            checkpointer=saver,
        )

        async def settle(order: str) -> None:
            config = {"configurable": {"thread_id": order}}
            state = await agent.aget_state(config)
            question = {"messages": [{"role": "user", "content": stand_in.question(order)}]}
            # `None` continues from the last checkpoint.
            step = None if state.created_at else question
            while "__interrupt__" in await agent.ainvoke(step, config, durability="sync"):
                await stand_in.approval(order)
                step = Command(resume={"decisions": [{"type": "approve"}]})

        await stand_in.each_run(settle)


def main() -> None:
    asyncio.run(work())
