"""DBOS: the loop as a workflow, with the model's responses and the effects as its steps.

The key is the id of the workflow with that of the step, which recovery repeats.
"""

from dbos import DBOS

import dbos_runs
import stand_in


@DBOS.step()
async def respond(messages: list) -> dict:
    return await stand_in.respond(messages)


@DBOS.step()
async def perform(tool: str, order: str, call: str) -> str:
    return await stand_in.effect(tool, order, f"{DBOS.workflow_id}-{DBOS.step_id}")


@DBOS.workflow()
async def loop(order: str) -> str:
    return await stand_in.converse(order, respond, lambda call: dbos_runs.approved(), perform)


def main() -> None:
    dbos_runs.configure()
    dbos_runs.work(loop)
