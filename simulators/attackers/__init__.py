"""Attackers: what someone who sees the releases, and knows a little more, can find out."""
