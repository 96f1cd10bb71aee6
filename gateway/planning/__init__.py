"""`noiseless plan`: from a wanted accuracy or a budget, and a public load profile, to a codebook."""

from gateway.planning.display import draw_plan, show_plan
from gateway.planning.options import Option, Wish
from gateway.planning.plan import Plan, Request, make_plan
from gateway.planning.profile import PlanError, Profile, read_profile

__all__ = [
    "Option",
    "Plan",
    "PlanError",
    "Profile",
    "Request",
    "Wish",
    "draw_plan",
    "make_plan",
    "read_profile",
    "show_plan",
]
