"""Microsoft's Agent Framework: the loop as a functional workflow, each response and effect as a step.

As https://learn.microsoft.com/agent-framework and the documentation of the package recommend: a
checkpoint after each step in files, and `request_info` for the approval. A step cannot read an id of its
own, so the key is the id of the call, which the step of the response contains.
"""

import asyncio
import warnings

from agent_framework import FileCheckpointStorage, RunContext, step, workflow

import stand_in


@step
async def respond(messages: list) -> dict:
    return await stand_in.respond(messages)


@step
async def perform(tool: str, order: str, key: str) -> str:
    return await stand_in.effect(tool, order, key)


@workflow(name="loop")
async def loop(order: str, ctx: RunContext) -> str:
    async def approved(call: str) -> None:
        await ctx.request_info({"call": call}, bool, request_id=call)

    return await stand_in.converse(order, respond, approved, perform)


async def settle(order: str) -> None:
    storage = FileCheckpointStorage(stand_in.store(order))
    run = loop.build(checkpoint_storage=storage)
    last = await storage.get_latest(workflow_name="loop")
    if last is None:
        result = await run.run(order)
    else:
        result = await run.run(checkpoint_id=last.checkpoint_id)
    while requests := result.get_request_info_events():
        await stand_in.approval(order)
        result = await run.run(responses={request.request_id: True for request in requests})


def main() -> None:
    warnings.simplefilter("ignore")
    asyncio.run(stand_in.each_run(settle))
