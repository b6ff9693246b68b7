"""Restate: the loop as a workflow, with the model's responses and the effects as its journaled steps.

As https://docs.restate.dev recommends: `ctx.run` for everything that is not deterministic, a durable
promise for the approval, and `ctx.uuid()` as the key, which is the same in each attempt.
"""

import asyncio
import json
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
    messages = [{"role": "user", "content": stand_in.question(order)}]
    while True:
        message = await ctx.run_typed("respond", stand_in.respond, messages=messages)
        messages.append(message)
        calls = message.get("tool_calls")
        if not calls:
            return message["content"]
        for call in calls:
            function = call["function"]
            if function["name"] == "refund":
                await ctx.promise("approval", type_hint=bool).value()
            wanted = {"tool": function["name"], "key": str(ctx.uuid())}
            wanted |= json.loads(function["arguments"])
            result = await ctx.run_typed("perform", stand_in.effect, **wanted)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


@loop.handler()
async def approve(ctx: restate.WorkflowSharedContext) -> None:
    await ctx.promise("approval", type_hint=bool).resolve(True)


async def work() -> None:
    here = os.environ["CRASH_ADDRESS"]
    config = hypercorn.config.Config()
    config.bind = [here]
    served = asyncio.create_task(hypercorn.asyncio.serve(restate.app([loop]), config))
    async with httpx.AsyncClient(timeout=90) as client:

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
