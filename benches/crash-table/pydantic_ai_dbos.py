"""pydantic-ai: its agent, made durable by DBOS.

As https://ai.pydantic.dev/durable_execution/dbos recommends: the capability `DBOSDurability`, the run
within a workflow, and each tool with I/O as a step. The approval is pydantic-ai's own, by deferred
tools. The key is the id of the call, which the step of the response contains.
"""

import asyncio
import logging

from dbos import DBOS, DBOSConfig, SetWorkflowID
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import stand_in

agent = None


@DBOS.step()
async def perform(tool: str, order: str, key: str) -> str:
    return await stand_in.effect(tool, order, key)


async def charge(context: RunContext, order: str) -> str:
    """Charges an order."""
    return await perform("charge", order, context.tool_call_id)


async def refund(context: RunContext, order: str) -> str:
    """Refunds an order."""
    return await perform("refund", order, context.tool_call_id)


async def notify(context: RunContext, order: str) -> str:
    """Notifies the customer of an order."""
    return await perform("notify", order, context.tool_call_id)


@DBOS.workflow()
async def loop(order: str) -> str:
    result = await agent.run(stand_in.question(order))
    while isinstance(result.output, DeferredToolRequests):
        await DBOS.recv_async("approval", timeout_seconds=60)
        approvals = {call.tool_call_id: True for call in result.output.approvals}
        result = await agent.run(
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals=approvals),
        )
    return result.output


async def settle(order: str) -> None:
    with SetWorkflowID(order):
        run = await DBOS.start_workflow_async(loop, order)
    await stand_in.approval(order)
    await DBOS.send_async(order, True, "approval", idempotency_key=f"{order}-approval")
    await run.get_result()


def main() -> None:
    global agent
    config: DBOSConfig = {
        "name": "crash-table",
        "system_database_url": f"sqlite:///{stand_in.store('dbos.sqlite')}",
        "application_version": "1",
        "run_admin_server": False,
    }
    DBOS(config=config)
    logging.getLogger("dbos").setLevel(logging.WARNING)
    provider = OpenAIProvider(base_url=f"{stand_in.url()}/v1", api_key="none")
    agent = Agent(
        OpenAIChatModel("stand-in", provider=provider),
        name="crash-table",
        output_type=[str, DeferredToolRequests],
        capabilities=[DBOSDurability()],
    )
    agent.tool(charge)
    agent.tool(requires_approval=True)(refund)
    agent.tool(notify)

    async def work() -> None:
        DBOS.launch()
        await stand_in.each_run(settle)

    asyncio.run(work())
