"""Open slots: from the readings of meters to one integer per household and slot.

What a slot becomes does not depend on the order or the batches in which its readings came, and a repeat changes
nothing. Of readings of one meter that speak of the same time the largest counts (a provisional, partial value is
the smaller one), and of a register a live one rather than a retained one. Only a flood is cut off, in the order of
arrival. All arithmetic is exact, in integers.

A household's value is the sum of her meters' mean powers (mW, each rounded down); it is missing if one of them is.
How a meter's readings become mean power stands with each quantity: :mod:`~gateway.slots.intervals`,
:mod:`~gateway.slots.powers`, :mod:`~gateway.slots.registers` and :mod:`~gateway.slots.believing`.
"""

from gateway.slots.open_slots import OpenSlots, Put, Taken
from gateway.slots.register_state import RegisterState

__all__ = ["OpenSlots", "Put", "RegisterState", "Taken"]
