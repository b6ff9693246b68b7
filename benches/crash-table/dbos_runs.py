"""What both rows with DBOS have in common: one workflow for each run, in SQLite.

As https://docs.dbos.dev/python/tutorials/workflow-tutorial recommends: one workflow id for each run,
recovery at the launch, and `recv` for the approval.
"""

import asyncio
import logging

from dbos import DBOS, DBOSConfig, SetWorkflowID

import stand_in


def configure() -> None:
    config: DBOSConfig = {
        "name": "crash-table",
        "system_database_url": f"sqlite:///{stand_in.store('dbos.sqlite')}",
        "application_version": "1",
        "run_admin_server": False,
    }
    DBOS(config=config)
    logging.getLogger("dbos").setLevel(logging.WARNING)


async def approved() -> None:
    # The person takes less than a day.
    await DBOS.recv_async("approval", timeout_seconds=86_400)


def work(loop) -> None:
    async def settle(order: str) -> None:
        with SetWorkflowID(order):
            run = await DBOS.start_workflow_async(loop, order)
        await stand_in.approval(order)
        # The same key: a second message of the same approval is ignored.
        await DBOS.send_async(order, True, "approval", idempotency_key=f"{order}-approval")
        await run.get_result()

    async def launched() -> None:
        DBOS.launch()
        await stand_in.each_run(settle)

    asyncio.run(launched())
