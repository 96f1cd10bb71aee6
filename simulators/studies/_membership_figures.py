from __future__ import annotations


def draw_all(rows, source):
    return {}
