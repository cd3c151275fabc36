"""Drives the package MLRsearch from PyPI with trials that the caller measures.

Standard input, one JSON object a line: first the configuration,
  {"min_load", "max_load", "goals": [{"loss_ratio", "exceed_ratio", "relative_width",
   "initial_trial_duration", "final_trial_duration", "duration_sum"}]},
then the answer to each trial, {"offered", "forwarded"} in frames.
Standard output, one JSON object a line: a trial to measure, {"load", "duration"}; in the end
the results in the order of the goals, {"results": [{"lower", "upper"}]}, null where there is none.
"""

import json
import sys

from MLRsearch import (
    AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal,
)


def say(message):
    print(json.dumps(message), flush=True)


class Measurer(AbstractMeasurer):
    """Asks the other end of the pipe."""

    def measure(self, intended_duration, intended_load):
        say({"load": intended_load, "duration": intended_duration})
        seen = json.loads(sys.stdin.readline())
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=seen["offered"],
            loss_count=seen["offered"] - seen["forwarded"],
        )


def load(bound):
    return None if bound is None else float(bound)


def main():
    asked = json.loads(sys.stdin.readline())
    goals = [SearchGoal(preceding_targets=2, expansion_coefficient=2, fail_fast=False, **goal) for goal in asked["goals"]]
    config = Config()
    config.goals = goals
    config.max_load = asked["max_load"]
    config.min_load = asked["min_load"]
    # The measurer's time is virtual; the search is not to end by the wall clock, and to be
    # compared trial for trial it has no warm-up of its own.
    config.search_duration_max = 1e6
    config.warmup_duration = None
    found = MultipleLossRatioSearch(config=config).search(measurer=Measurer(), debug=lambda text: None)
    results = [found[goal] for goal in goals]
    say({"results": [
        {"lower": load(result.relevant_lower_bound), "upper": load(result.relevant_upper_bound)} for result in results
    ]})


main()
