"""Gates: rules that pass or fail, `faithfulness.mean >= 0.8`.

The grammar of rules over scores is in `rules`, that of rules over the judge in `judge_rules`.
"""

from anvil_local.gates.check import UNSTABLE_BAND, check_gates
from anvil_local.gates.early import is_settled
from anvil_local.gates.judge_rules import JudgeGate, parse_judge_gate, parse_rules
from anvil_local.gates.rules import AGGREGATES, COMPARISONS, TARGETS, Gate, parse_gate, show_apart

__all__ = [
    "AGGREGATES",
    "COMPARISONS",
    "TARGETS",
    "UNSTABLE_BAND",
    "Gate",
    "JudgeGate",
    "check_gates",
    "is_settled",
    "parse_gate",
    "parse_judge_gate",
    "parse_rules",
    "show_apart",
]
