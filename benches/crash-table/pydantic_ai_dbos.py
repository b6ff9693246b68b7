"""pydantic-ai: its agent, made durable by DBOS.

As https://ai.pydantic.dev/durable_execution/dbos recommends: the capability `DBOSDurability`, the run
within a workflow, and each tool with I/O as a step. The approval is pydantic-ai's own, by deferred
tools. The key is the id of the call, which the step of the response contains.
"""

from dbos import DBOS
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import dbos_runs
import stand_in

agent = None


@DBOS.step()
async def perform(tool: str, order: str, key: str) -> str:
    return await stand_in.effect(tool, order, key)


def tool(name: str):
    async def effect(context: RunContext, order: str) -> str:
        return await perform(name, order, context.tool_call_id)

    agent.tool(name=name, description=stand_in.DESCRIPTION, requires_approval=name == "refund")(effect)


@DBOS.workflow()
async def loop(order: str) -> str:
    result = await agent.run(stand_in.question(order))
    while isinstance(result.output, DeferredToolRequests):
        await dbos_runs.approved()
        approvals = {call.tool_call_id: True for call in result.output.approvals}
        result = await agent.run(
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals=approvals),
        )
    return result.output


def main() -> None:
    global agent
    dbos_runs.configure()
    provider = OpenAIProvider(base_url=f"{stand_in.url()}/v1", api_key="none")
    agent = Agent(
        OpenAIChatModel("stand-in", provider=provider),
        name="crash-table",
        output_type=[str, DeferredToolRequests],
        capabilities=[DBOSDurability()],
    )
    for name in stand_in.TOOLS:
        tool(name)
    dbos_runs.work(loop)
