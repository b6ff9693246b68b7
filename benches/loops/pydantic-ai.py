"""pydantic-ai: one run of its loop with a model as code. Prints the times of its iterations as JSON."""

import asyncio
import json
import sys
import time

from pydantic_ai import Agent, Tool, UsageLimits
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

ITERATIONS = 200


def look_up(number: int) -> Tool:
    async def run(number: int, details: bool = False) -> str:
        return f"record {number}: open"

    schema = {
        "type": "object",
        "properties": {
            "number": {
                "type": "integer",
                "minimum": 0,
                "description": f"The record's number in ledger {number}.",
            },
            "details": {"type": "boolean", "description": "Whether to add its history."},
        },
        "required": ["number"],
        "additionalProperties": False,
    }
    description = f"Looks a record up in ledger {number} by its number."
    return Tool.from_schema(run, f"look_up_{number:04}", description, schema)


def main() -> None:
    starts = []

    def respond(messages, info) -> ModelResponse:
        starts.append((time.process_time(), time.perf_counter()))
        if len(starts) <= ITERATIONS:
            call = ToolCallPart("look_up_0007", '{"number": 1042}', f"call_{len(starts)}")
            return ModelResponse([call])
        return ModelResponse([TextPart("Done.")])

    tools = [look_up(number) for number in range(int(sys.argv[1]))]
    agent = Agent(FunctionModel(respond), tools=tools)
    limits = UsageLimits(request_limit=None)
    result = asyncio.run(agent.run("Read the ledgers.", usage_limits=limits))
    parts = [part for message in result.all_messages() for part in message.parts]
    returned = sum(part.part_kind == "tool-return" and part.content == "record 1042: open" for part in parts)
    if result.output != "Done." or returned != ITERATIONS:
        sys.exit(f"it ended otherwise: {result.output}, {returned} results")

    def times(index: int) -> list[float]:
        return [(after[index] - before[index]) * 1e6 for before, after in zip(starts, starts[1:])]

    print(json.dumps({"iterations": times(0), "wall": times(1)}))


main()
