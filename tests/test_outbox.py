"""What waits to be published is counted, and those at its ends wait for one another."""

import asyncio

from gateway.outbox import Outbox


def test_it_is_full_at_its_bound_and_relieved_at_half() -> None:
    outbox = Outbox(3, slots=1, releases=10)
    assert (outbox.full, outbox.relieved) == (False, True)
    outbox.add(10)
    outbox.add(10)
    assert (outbox.full, outbox.relieved, outbox.releases) == (True, False, 30)
    outbox.sent(10)
    outbox.delivered()
    assert (outbox.full, outbox.relieved, outbox.releases) == (False, False, 20)
    outbox.delivered()
    assert outbox.relieved


def test_with_a_bound_of_one_it_is_relieved_when_empty() -> None:
    outbox = Outbox(1)
    assert outbox.relieved
    outbox.add(1)
    assert (outbox.full, outbox.relieved) == (True, False)


async def test_waiting_ends_with_what_is_waited_for() -> None:
    outbox = Outbox(2)
    await asyncio.wait_for(outbox.emptied(), 1)
    filled = asyncio.create_task(outbox.filled())
    await asyncio.sleep(0)
    assert not filled.done()
    outbox.add(1)
    await asyncio.wait_for(filled, 1)
    emptied, changed = asyncio.create_task(outbox.emptied()), asyncio.create_task(outbox.changed(5))
    await asyncio.sleep(0)
    assert not emptied.done()
    outbox.delivered()
    await asyncio.wait_for(asyncio.gather(emptied, changed), 1)


async def test_waiting_for_a_change_ends_after_a_while_too() -> None:
    await asyncio.wait_for(Outbox(1).changed(0.01), 1)
