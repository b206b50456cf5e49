"""Gates: rules over scores that pass or fail, `faithfulness.mean >= 0.8`. The grammar is in `rules`."""

from anvil_local.gates.check import UNSTABLE_BAND, check_gates
from anvil_local.gates.early import is_settled
from anvil_local.gates.rules import AGGREGATES, COMPARISONS, TARGETS, Gate, parse_gate, show_apart

__all__ = [
    "AGGREGATES",
    "COMPARISONS",
    "TARGETS",
    "UNSTABLE_BAND",
    "Gate",
    "check_gates",
    "is_settled",
    "parse_gate",
    "show_apart",
]
