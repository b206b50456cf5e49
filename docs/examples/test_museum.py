"""Answers as tests: pytest docs/examples/test_museum.py

The fixture `anvil` comes with the package and loads the judge once a session. `--anvil-report out.json`
keeps everything.
"""

from pathlib import Path

import pytest

DATA = Path(__file__).with_name("opening_hours.jsonl")


def test_the_opening_hours_are_those_of_the_passage(anvil):
    passages = ["The museum is open from nine to five. It is closed on Mondays."]
    anvil.assert_faithful("The museum is open from nine to five.", passages)


@pytest.mark.anvil(str(DATA))
def test_every_answer_is_at_least_half_supported(anvil, anvil_sample):
    # A refusal has no score, which is no pass: skip it, so that it is seen and counted.
    anvil.assert_sample(anvil_sample, at_least=0.5, unscored="skip")
