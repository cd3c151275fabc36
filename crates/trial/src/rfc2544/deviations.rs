//! In what our tests deviate from the RFCs: tests and timing enter, names and words leave.

use std::time::Duration;

use results::record::Deviation;

use super::{Rfc2544, Test, Timing};

impl Rfc2544 {
    /// All deviations: of the method, of the timing, of traffic and testbed.
    pub(super) fn all_deviations(&self) -> Vec<Deviation> {
        let mut all = self.of_the_method();
        all.extend(self.of_the_timing());
        all.extend(self.deviations.iter().cloned());
        all
    }

    fn of_the_method(&self) -> Vec<Deviation> {
        let mut found = vec![deviation(
            "no-learning-frames",
            "a warm-up precedes the first trial, no routing update and learning frames precede each (RFC 2544 sections 13 and 23)",
        )];
        if self.tests.contains(&Test::Latency) {
            found.push(deviation(
                "latency-of-every-frame",
                "the latency of a stream is the mean over all its frames, not that of one tagged frame after 60 s (RFC 2544 section 26.2)",
            ));
            found.push(deviation(
                "latency-between-programs",
                "latency is read in software where a frame is written and where it is received, so the tester's own share is part of it (RFC 1242 section 3.8)",
            ));
        }
        if self.tests.contains(&Test::BackToBack) {
            found.push(deviation(
                "bursts-from-the-last",
                "each search for a burst but the first begins at what the one before found, and steps are half a percent of the burst (RFC 9004 sections 6.2 and 6.3: independent binary searches)",
            ));
        }
        if self.tests.contains(&Test::Recovery) {
            found.push(deviation(
                "recovery-in-intervals",
                "the last frame lost is known to an interval of 10 ms, after a second to 100 ms (RFC 2544 section 26.5)",
            ));
        }
        found
    }

    /// What is shorter or less often than it should be.
    fn of_the_timing(&self) -> Vec<Deviation> {
        let (own, asked) = (&self.timing, Timing::standard());
        let needs = |test| self.tests.contains(&test);
        let searches = self.needs_throughput();
        let overload = needs(Test::Recovery);
        let waits =
            ("short-waits", "between trials", own.pause(), asked.pause(), "RFC 2544 section 23", true);
        let durations = [
            waits,
            ("short-trials", "each deciding trial", own.trial, asked.trial, "RFC 2544 section 24", searches),
            (
                "short-loss-trials",
                "each trial of the loss rate",
                own.loss_trial,
                asked.loss_trial,
                "RFC 2544 section 24",
                needs(Test::Loss),
            ),
            (
                "short-streams",
                "each latency stream",
                own.stream,
                asked.stream,
                "RFC 2544 section 26.2",
                needs(Test::Latency),
            ),
            (
                "short-bursts",
                "the longest burst",
                own.burst,
                asked.burst,
                "RFC 2544 section 26.4",
                needs(Test::BackToBack),
            ),
            (
                "short-overload",
                "the overload",
                own.overload,
                asked.overload,
                "RFC 2544 section 26.5",
                overload,
            ),
            (
                "short-before-reset",
                "forwarding before the reset",
                own.before_reset,
                asked.before_reset,
                "RFC 6201 section 4.1.1.1",
                needs(Test::Reset),
            ),
        ];
        let counts = [
            (
                "few-streams",
                "latency streams",
                own.streams,
                asked.streams,
                "RFC 2544 section 26.2",
                needs(Test::Latency),
            ),
            (
                "few-bursts",
                "searches for a burst",
                own.bursts,
                asked.bursts,
                "RFC 2544 section 26.4",
                needs(Test::BackToBack),
            ),
        ];
        let short = durations.into_iter().filter(|(_, _, own, asked, _, run)| *run && own < asked);
        let few = counts.into_iter().filter(|(_, _, own, asked, _, run)| *run && own < asked);
        let short = short.map(|(name, what, own, asked, section, _)| {
            let text = format!("{what}: {}, not {} ({section})", seconds(own), seconds(asked));
            deviation(name, &text)
        });
        let few = few.map(|(name, what, own, asked, section, _)| {
            deviation(name, &format!("{own} {what}, not {asked} ({section})"))
        });
        short.chain(few).collect()
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

fn deviation(name: &str, text: &str) -> Deviation {
    Deviation { name: name.to_owned(), text: text.to_owned() }
}
