"""The pytest plugin, as a user's test suite sees it."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

# Loaded before pytester takes its copy of the loaded modules: an inner run must not load pydantic anew.
import anvil_local.config
import anvil_local.reports
import anvil_local.runner

FAKE = """
    import pytest
    from anvil_local import FakeJudge

    @pytest.fixture(scope="session")
    def anvil_judge():
        return FakeJudge({answers})
"""

TWO_CLAIMS = """
    def test_opening(anvil):
        anvil.assert_faithful(
            "It opens at nine. Entry is free.",
            ["Open from nine to five.", "The museum is in the old harbour."]{more}
        )
"""

TRACE = """
    TRACE = [
        {"role": "user", "content": "Cancel order 17."},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "cancel", "args": {"order": 17}}]},
        {"role": "tool", "content": "error: order 17 has left the house"},
        {"role": "assistant", "content": "Order 17 is cancelled."},
    ]
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A test suite without settings of its own."""
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\n")
    return pytester


def make(suite: pytest.Pytester, answers: str, *tests: str, **values: str) -> None:
    import textwrap

    suite.makeconftest(textwrap.dedent(FAKE.format(answers=answers)))
    body = "".join(textwrap.dedent(test) for test in tests)
    for name, value in {"more": "", **values}.items():
        body = body.replace("{" + name + "}", value)
    suite.makepyfile(test_answers=body)


# Assertions


def test_a_faithful_answer_passes(suite: pytest.Pytester) -> None:
    make(suite, "[1]", TWO_CLAIMS)
    suite.runpytest().assert_outcomes(passed=1)


def test_the_settings_of_the_project_hold_here_too(suite: pytest.Pytester) -> None:
    suite.path.joinpath("anvil.toml").write_text("shape = true\n", encoding="utf-8")
    make(suite, "lambda task, fields: 1.5 if task == 'contradict' else -1.25", TWO_CLAIMS)
    result = suite.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E         contradicted * It opens at nine.*"])


def test_a_failure_shows_statements_verdicts_margins_context_and_the_judge(suite: pytest.Pytester) -> None:
    make(suite, "[2.5, -1.25]", TWO_CLAIMS)
    result = suite.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">       anvil.assert_faithful(",
            "E       AssertionError: faithfulness 0.50 is below 1: 1 of 2 statements supported",
            "E         supported    +2.50  It opens at nine.",
            "E         refused      -1.25  Entry is free.",
            "E       context:",
            "E         [[]1] Open from nine to five.",
            "E         [[]2] The museum is in the old harbour.",
            "E       response:",
            "E         It opens at nine. Entry is free.",
            "E       judge: fake (*)",
        ]
    )
    # The traceback ends in the user's test.
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_the_limit_is_the_users(suite: pytest.Pytester) -> None:
    make(suite, "[1, 0]", TWO_CLAIMS, more=", at_least=0.5")
    suite.runpytest().assert_outcomes(passed=1)


@pytest.mark.parametrize("more", [", at_least=80", ", at_least=float('nan')", ", unscored='ignore'"])
def test_a_limit_that_is_none_is_refused(suite: pytest.Pytester, more: str) -> None:
    make(suite, "[1]", TWO_CLAIMS, more=more)
    result = suite.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       ValueError: *"])


NO_CLAIM = 'def test_refusal(anvil):\n    anvil.assert_faithful("I don\'t know.", ["Open."]{more})\n'


def test_an_answer_without_a_claim_fails_and_says_why(suite: pytest.Pytester) -> None:
    make(suite, "[1]", NO_CLAIM, more=", at_least=0.0")
    result = suite.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       AssertionError: faithfulness unscored: no_statements"])


def test_an_answer_without_a_claim_is_skipped_if_the_user_says_so(suite: pytest.Pytester) -> None:
    make(suite, "[1]", NO_CLAIM, more=", unscored='skip'")
    result = suite.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * faithfulness unscored: no_statements"])


FAILS_ONCE = "lambda task, fields: fail() if 'free' in fields['statement'] else 1"


def make_failing(suite: pytest.Pytester, more: str) -> None:
    make(suite, FAILS_ONCE, TWO_CLAIMS, more=more)
    path = suite.path / "conftest.py"
    path.write_text(
        "from anvil_local.errors import EngineError\ndef fail():\n    raise EngineError('broken')\n"
        + path.read_text(encoding="utf-8"),
        encoding="utf-8",
    )


@pytest.mark.parametrize(("unscored", "outcome"), [("fail", "failed"), ("skip", "skipped")])
def test_an_undecided_statement_never_passes(suite: pytest.Pytester, unscored: str, outcome: str) -> None:
    make_failing(suite, f", at_least=0.0, unscored={unscored!r}")
    result = suite.runpytest("-rs")
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(
        ["*faithfulness 1.00, but 1 undecided: 1 of 1 statements supported, 1 undecided*"]
    )


def test_bad_input_is_a_failure_with_its_hint_and_without_inner_frames(suite: pytest.Pytester) -> None:
    make(suite, "[1]", 'def test_empty(anvil):\n    anvil.assert_faithful("", ["Open."])\n')
    result = suite.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       Failed: *`response` is empty*", "E       hint: *"])
    result.stdout.no_fnmatch_line("*rows.py*")


def test_a_goal_that_is_not_reached_shows_its_parts_and_the_trace(suite: pytest.Pytester) -> None:
    make(
        suite,
        "[0, 1, 0]",
        TRACE,
        "def test_run(anvil):\n    anvil.assert_goal_reached(TRACE, reference='Order 17 is cancelled.')\n",
    )
    result = suite.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E       AssertionError: goal_with_reference: the desired outcome is not reached",
            "E         note: claimed_not_done",
            "E         not reached  -4.00  reference: Order 17 is cancelled.",
            "E       *claimed: reached (+4.00), done: not reached (-4.00)",
            "E       trace:",
            "E       *error: order 17 has left the house",
        ]
    )


def test_a_goal_is_inferred_without_a_reference(suite: pytest.Pytester) -> None:
    make(
        suite,
        "[1]",
        TRACE,
        "def test_run(anvil):\n"
        "    result = anvil.assert_goal_reached(TRACE)\n"
        "    assert result.metric == 'goal_without_reference'\n",
    )
    suite.runpytest().assert_outcomes(passed=1)


# Data


ROWS = [
    {"id": "free", "response": "Entry is free.", "retrieved_contexts": ["Entry is free."]},
    {"id": "nine", "response": "It opens at nine.", "retrieved_contexts": ["Open from ten."]},
]
EVERY_ROW = """
    import pytest

    @pytest.mark.anvil("data.jsonl")
    def test_row(anvil, anvil_sample):
        anvil.assert_sample(anvil_sample)
"""


def write_rows(folder: Path, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "data.jsonl").write_text(text, encoding="utf-8")


def test_a_marked_test_runs_once_a_row(suite: pytest.Pytester) -> None:
    make(suite, "[1, 0]", EVERY_ROW)
    write_rows(suite.path, ROWS)
    result = suite.runpytest("--strict-markers", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*::test_row[[]free] PASSED*", "*::test_row[[]nine] FAILED*"])


def test_bad_rows_stop_the_collection_with_their_lines(suite: pytest.Pytester) -> None:
    make(suite, "[1]", EVERY_ROW)
    write_rows(suite.path, [ROWS[0], {"id": "x", "response": 3}])
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*data.jsonl:2: `response` must be text*"])


def test_a_missing_or_empty_file_is_an_error_not_a_suite_without_tests(suite: pytest.Pytester) -> None:
    make(suite, "[1]", EVERY_ROW)
    missing = suite.runpytest()
    missing.assert_outcomes(errors=1)
    missing.stdout.fnmatch_lines(["*data.jsonl: no such file*"])
    write_rows(suite.path, [])
    suite.runpytest().assert_outcomes(errors=1)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("@pytest.mark.anvil\ndef test_row(anvil, anvil_sample): ...", "*the mark takes one file*"),
        ("@pytest.mark.anvil('data.jsonl')\ndef test_row(anvil): ...", "*as the argument `anvil_sample`*"),
        ("def test_row(anvil, anvil_sample): ...", "*anvil_sample needs its data*"),
    ],
)
def test_a_mark_that_is_used_wrongly_is_explained(suite: pytest.Pytester, test: str, message: str) -> None:
    make(suite, "[1]", f"import pytest\n{test}\n")
    write_rows(suite.path, ROWS)
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


# The judge


def test_an_unknown_model_is_an_error_at_set_up(suite: pytest.Pytester) -> None:
    suite.makepyfile('def test_it(anvil):\n    anvil.assert_faithful("It is free.", ["Free."])\n')
    result = suite.runpytest("--anvil-model", "no-such-model")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no-such-model*", "*hint: *"])


def test_the_judge_is_made_once_and_closed_at_the_end(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "import anvil_local.cli.options as options\nfrom anvil_local import FakeJudge\n"
        "class Counted(FakeJudge):\n    def close(self): print('CLOSED', len(self.asked))\n"
        "def build(config):\n    print('BUILT', *config.model)\n    return Counted([1])\n"
        "options.build_judge = build\n"
    )
    suite.makepyfile(
        'def test_a(anvil):\n    anvil.assert_faithful("It is free.", ["Free."])\n'
        'def test_b(anvil):\n    anvil.assert_faithful("It is free.", ["Free."])\n'
    )
    result = suite.runpytest_subprocess("-s", "--anvil-model", "mine")
    result.assert_outcomes(passed=2)
    assert result.stdout.str().count("BUILT mine") == 1
    assert result.stdout.str().count("CLOSED 2") == 1


# Reports


def test_the_report_holds_every_assertion_and_its_rule(suite: pytest.Pytester) -> None:
    make(suite, "[1, 0, 1]", TWO_CLAIMS, NO_CLAIM, more=", at_least=0.5, unscored='skip'")
    text = (suite.path / "test_answers.py").read_text(encoding="utf-8")
    text += '    \ndef test_low(anvil):\n    anvil.assert_faithful("It is old. It is red.", ["It is old."])\n'
    (suite.path / "test_answers.py").write_text(text, encoding="utf-8")
    (suite.path / "conftest.py").write_text(
        (suite.path / "conftest.py").read_text(encoding="utf-8").replace("[1, 0, 1]", "[1, 0, 1, 0]"),
        encoding="utf-8",
    )
    result = suite.runpytest("--anvil-report", "out.json", "--anvil-report", "out.xml")
    result.assert_outcomes(passed=1, skipped=1, failed=1)
    result.stdout.fnmatch_lines(["anvil_local: report: out.json, out.xml"])
    report = anvil_local.reports.load_report(suite.path / "out.json")
    assert [item.sample_id for item in report.results] == [
        "test_answers.py::test_opening",
        "test_answers.py::test_refusal",
        "test_answers.py::test_low",
    ]
    assert [item.score for item in report.results] == [0.5, None, 0.5]
    assert [(gate.passed, gate.value) for gate in report.gates] == [(True, 0.5), (False, 0.5)]
    assert not report.passed
    ElementTree.parse(suite.path / "out.xml")


def test_a_report_that_cannot_be_written_is_refused_before_any_test(suite: pytest.Pytester) -> None:
    make(suite, "[1]", TWO_CLAIMS)
    result = suite.runpytest("--anvil-report", "out.docx")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--anvil-report: unknown kind of report*"])


def test_no_report_without_a_verdict_and_it_is_said(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_nothing(): ...\n")
    result = suite.runpytest("--anvil-report", "out.json")
    result.stdout.fnmatch_lines(["anvil_local: nothing was judged: no report is written"])
    assert not (suite.path / "out.json").exists()


# Several workers


MANY = "".join(
    f'def test_{number}(anvil):\n    anvil.assert_faithful("It is free.", ["Free."])\n' for number in range(6)
)
REAL_JUDGE = (
    "import os\nimport anvil_local.cli.options as options\nfrom anvil_local import FakeJudge\n"
    "def build(config):\n"
    "    open(f'built-{os.environ[\"PYTEST_XDIST_WORKER\"]}', 'w').close()\n"
    "    return FakeJudge([1])\n"
    "options.build_judge = build\n"
)


def check_report_of_many(suite: pytest.Pytester) -> None:
    report = anvil_local.reports.load_report(suite.path / "out.json")
    assert [item.sample_id for item in report.results] == [f"test_many.py::test_{n}" for n in range(6)]
    assert len(report.gates) == report.summaries[0].samples == 6
    assert report.passed
    assert report.complete


def test_each_worker_has_its_model_if_asked_and_there_is_one_report(suite: pytest.Pytester) -> None:
    suite.makeconftest(REAL_JUDGE)
    suite.makepyfile(test_many=MANY)
    result = suite.runpytest_subprocess("-n", "2", "--anvil-per-worker", "--anvil-report", "out.json")
    result.assert_outcomes(passed=6)
    assert len(list(suite.path.glob("built-*"))) == 2
    check_report_of_many(suite)


def test_with_groups_one_worker_judges_or_none(suite: pytest.Pytester) -> None:
    suite.makeconftest(REAL_JUDGE)
    suite.makepyfile(test_many=MANY)
    result = suite.runpytest_subprocess("-n", "2", "--dist", "loadgroup", "--anvil-report", "out.json")
    built = len(list(suite.path.glob("built-*")))
    if built == 0:  # pytest-xdist 3.8.0 under pytest 9.2 ignores groups; see the plugin
        result.assert_outcomes(errors=6)
        result.stdout.fnmatch_lines(["*loadgroup did not bring the tests that judge together*"])
        return
    result.assert_outcomes(passed=6)
    assert built == 1
    check_report_of_many(suite)


def test_tests_in_several_groups_do_not_load_several_models(suite: pytest.Pytester) -> None:
    suite.makeconftest(REAL_JUDGE)
    suite.makepyfile(test_many="import pytest\n@pytest.mark.xdist_group('mine')\n" + MANY)
    result = suite.runpytest_subprocess("-n", "2", "--dist", "loadgroup")
    result.assert_outcomes(errors=6)
    assert not list(suite.path.glob("built-*"))


def test_without_a_word_several_workers_do_not_load_several_models(suite: pytest.Pytester) -> None:
    suite.makeconftest(REAL_JUDGE)
    suite.makepyfile(test_many=MANY)
    result = suite.runpytest_subprocess("-n", "2")
    result.assert_outcomes(errors=6)
    result.stdout.fnmatch_lines(["*each of the 2 pytest-xdist workers would load a model of its own*"])
    assert not list(suite.path.glob("built-*"))


def test_a_worker_that_died_leaves_a_report_that_says_it_is_not_whole(suite: pytest.Pytester) -> None:
    suite.makeconftest(REAL_JUDGE)
    suite.makepyfile(test_many=MANY + "def test_crash():\n    import os\n    os._exit(1)\n")
    result = suite.runpytest_subprocess("-n", "2", "--anvil-per-worker", "--anvil-report", "out.json")
    assert result.ret != 0
    report = anvil_local.reports.load_report(suite.path / "out.json")
    assert not report.complete
    assert not report.passed


# What it costs


def test_a_suite_that_does_not_use_it_loads_none_of_the_package(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other people's plugins load what they like.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    suite.makepyfile(
        "import sys\n"
        "def test_loaded():\n"
        "    assert sorted(name for name in sys.modules if 'anvil' in name) == "
        "['anvil_local', 'anvil_local._version', 'anvil_local.pytest_plugin']\n"
        "    assert not {'numpy', 'pydantic', 'llama_cpp', 'outlines', 'rich', 'typer'} & set(sys.modules)\n"
    )
    suite.runpytest_subprocess("-p", "anvil_local.pytest_plugin").assert_outcomes(passed=1)


def test_it_starts_in_less_than_20_ms() -> None:
    code = (
        "import pytest, time; start = time.process_time(); import anvil_local.pytest_plugin; "
        "print(time.process_time() - start)"
    )
    # The best of some: a busy machine makes a start slower, never faster.
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(runs) < 0.020


def test_it_can_be_switched_off(suite: pytest.Pytester) -> None:
    suite.makepyfile("import sys\ndef test_off():\n    assert 'anvil_local' not in sys.modules\n")
    suite.runpytest_subprocess("-p", "no:anvil_local").assert_outcomes(passed=1)
