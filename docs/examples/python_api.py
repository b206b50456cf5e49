"""Judge rows from Python: python docs/examples/python_api.py

Prints each statement with its verdict, and whether the gate passed.
"""

from anvil_local import GgufJudge, Options, evaluate

ROWS = [
    {
        "id": "parking",
        "response": "There is a car park behind the museum. Parking costs four euros an hour.",
        "retrieved_contexts": ["There is a car park behind the museum, with 80 places."],
    }
]


def main() -> None:
    """Load the judge once, judge, and look at what it said."""
    with GgufJudge.load() as judge:  # or .load("path/to/model.gguf")
        report = evaluate(
            ROWS, judge=judge, gates=["faithfulness>=0.4"], options=Options(decomposition="sentence")
        )
    for row in report.statement_rows():
        print(row["value"], row["text"])
    print("passed" if report.passed else "failed", report.summaries[0].mean)


if __name__ == "__main__":
    main()
