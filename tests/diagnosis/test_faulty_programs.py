"""Anomaly mode names the line of faults in drawn programs, forward and in their compiled backward."""

from extent import WHOLE, machine_code
from faulty_programs import counts

COUNT = 200 if WHOLE else 24


def test_faults_are_named_by_their_line_and_no_other() -> None:
    found, missed = counts(range(10 * COUNT), COUNT, machine_code)
    text = "\n".join(f"{one.seed}, line {one.line}: {one.kind}" for one in missed)
    assert found["wrong"] == 0, text
    assert found["named"] >= 0.95 * COUNT, text
    assert found["forward"] and found["backward"]
