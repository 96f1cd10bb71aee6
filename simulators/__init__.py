"""Simulated meters, attackers and studies around the gateway."""
