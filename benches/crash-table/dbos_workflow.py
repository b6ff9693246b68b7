"""DBOS: the loop as a workflow, with the model's responses and the effects as its steps.

As https://docs.dbos.dev/python/tutorials/workflow-tutorial recommends: one workflow id for each run,
recovery at the launch, `recv` for the approval. The key is the id of the workflow with that of the
step, which recovery repeats.
"""

import asyncio
import json
import logging

from dbos import DBOS, DBOSConfig, SetWorkflowID

import stand_in


@DBOS.step()
async def respond(messages: list) -> dict:
    return await stand_in.respond(messages)


@DBOS.step()
async def perform(tool: str, order: str) -> str:
    return await stand_in.effect(tool, order, f"{DBOS.workflow_id}-{DBOS.step_id}")


@DBOS.workflow()
async def loop(order: str) -> str:
    messages = [{"role": "user", "content": stand_in.question(order)}]
    while True:
        message = await respond(messages)
        messages.append(message)
        calls = message.get("tool_calls")
        if not calls:
            return message["content"]
        for call in calls:
            function = call["function"]
            if function["name"] == "refund":
                await DBOS.recv_async("approval", timeout_seconds=60)
            result = await perform(function["name"], json.loads(function["arguments"])["order"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


async def settle(order: str) -> None:
    with SetWorkflowID(order):
        run = await DBOS.start_workflow_async(loop, order)
    await stand_in.approval(order)
    # The same key: a second message of the same approval is ignored.
    await DBOS.send_async(order, True, "approval", idempotency_key=f"{order}-approval")
    await run.get_result()


def main() -> None:
    config: DBOSConfig = {
        "name": "crash-table",
        "system_database_url": f"sqlite:///{stand_in.store('dbos.sqlite')}",
        "application_version": "1",
        "run_admin_server": False,
    }
    DBOS(config=config)
    logging.getLogger("dbos").setLevel(logging.WARNING)

    async def work() -> None:
        DBOS.launch()
        await stand_in.each_run(settle)

    asyncio.run(work())
