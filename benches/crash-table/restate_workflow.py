"""Restate: the loop as a workflow, with the model's responses and the effects as its journaled steps.

As https://docs.restate.dev recommends: `ctx.run` for everything that is not deterministic, a durable
promise for the approval, and `ctx.uuid()` as the key, which is the same in each attempt.
"""

import asyncio
import os
from datetime import timedelta

import httpx
import hypercorn.asyncio
import hypercorn.config
import restate

import stand_in

loop = restate.Workflow("loop")


@loop.main(
    invocation_retry_policy=restate.InvocationRetryPolicy(
        initial_interval=timedelta(milliseconds=50),
        max_interval=timedelta(milliseconds=200),
        # By default 70, after which a run is paused until a person resumes it.
        max_attempts=1_000_000,
    )
)
async def run(ctx: restate.WorkflowContext, order: str) -> str:
    async def respond(messages: list) -> dict:
        return await ctx.run_typed("respond", stand_in.respond, messages=messages)

    async def approved(call: str) -> None:
        await ctx.promise("approval", type_hint=bool).value()

    async def perform(tool: str, order: str, call: str) -> str:
        key = str(ctx.uuid())
        return await ctx.run_typed("perform", stand_in.effect, tool=tool, order=order, key=key)

    return await stand_in.converse(order, respond, approved, perform)


@loop.handler()
async def approve(ctx: restate.WorkflowSharedContext) -> None:
    await ctx.promise("approval", type_hint=bool).resolve(True)


async def work() -> None:
    here = os.environ["CRASH_ADDRESS"]
    config = hypercorn.config.Config()
    config.bind = [here]
    served = asyncio.create_task(hypercorn.asyncio.serve(restate.app([loop]), config))
    async with httpx.AsyncClient(timeout=None) as client:

        async def call(url: str, json=None) -> httpx.Response:
            # Until both servers listen.
            while True:
                try:
                    return await client.post(url, json=json)
                except httpx.ConnectError:
                    await asyncio.sleep(0.01)

        admin, ingress = os.environ["CRASH_RESTATE_ADMIN"], os.environ["CRASH_RESTATE"]
        if (await client.get(f"{admin}/deployments")).json()["deployments"] == []:
            await call(f"http://{here}/health")
            deployment = {"uri": f"http://{here}", "use_http_11": False}
            (await call(f"{admin}/deployments", deployment)).raise_for_status()

        async def settle(order: str) -> None:
            # A workflow id runs once: a second request of it is refused.
            await call(f"{ingress}/loop/{order}/run/send", order)
            await stand_in.approval(order)
            await call(f"{ingress}/loop/{order}/approve")
            attached = await client.get(f"{ingress}/restate/workflow/loop/{order}/attach")
            attached.raise_for_status()

        await stand_in.each_run(settle)
    await served


def main() -> None:
    asyncio.run(work())
