"""The way to the stand-in for the model, the API with the effects, and the person, and the loop."""

import asyncio
import json
import os
import traceback

import httpx

TOOLS = ["charge", "refund", "notify"]
DESCRIPTION = "Has an effect on an order."

client = None


def url() -> str:
    return os.environ["CRASH_URL"]


def store(name: str) -> str:
    return os.path.join(os.environ["CRASH_STORE"], name)


def is_keyed() -> bool:
    """Whether the API ignores a repeated key: the idempotent way."""
    return "CRASH_KEYED" in os.environ


def question(order: str) -> str:
    return f"Settle order {order}."


async def post(path: str, json=None) -> httpx.Response:
    global client
    if client is None:
        # Without a time limit: the load of the machine must not end a run.
        client = httpx.AsyncClient(base_url=url(), timeout=None, verify=False)
    response = await client.post(path, json=json)
    return response.raise_for_status()


async def respond(messages: list) -> dict:
    """The model's next message, for systems that have no client of a model."""
    body = {"model": "stand-in", "messages": messages}
    response = await post("/v1/chat/completions", body)
    return response.json()["choices"][0]["message"]


async def effect(tool: str, order: str, key: str) -> str:
    path = f"/effect/{order}/{tool}"
    return (await post(f"{path}/{key}" if is_keyed() else path)).text


async def approval(order: str) -> None:
    """Returns when the person has approved the call that waits."""
    await post(f"/approval/{order}")


async def ended(order: str) -> None:
    await post(f"/ended/{order}")


async def converse(order: str, respond, approved, perform) -> str:
    """The loop, for systems that have none: each passes its durable steps."""
    messages = [{"role": "user", "content": question(order)}]
    while True:
        message = await respond(messages)
        messages = [*messages, message]
        calls = message.get("tool_calls")
        if not calls:
            return message["content"]
        for call in calls:
            function = call["function"]
            if function["name"] == "refund":
                await approved(call["id"])
            of_call = json.loads(function["arguments"])["order"]
            result = await perform(function["name"], of_call, call["id"])
            messages = [*messages, {"role": "tool", "tool_call_id": call["id"], "content": result}]


async def each_run(settle) -> None:
    """Begins or continues all runs at once. An error ends its own run only, and is printed."""

    async def guarded(order: str) -> None:
        try:
            await settle(order)
            await ended(order)
        except Exception:
            traceback.print_exc()

    await asyncio.gather(*map(guarded, os.environ["CRASH_RUNS"].split(",")))
