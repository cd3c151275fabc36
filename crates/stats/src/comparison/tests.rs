use super::*;
use crate::Random;

const BASE: f64 = 1e6;

/// `count` values around `BASE` · `ratio` with normal relative noise.
fn draw(random: &mut Random, ratio: f64, noise: f64, count: usize) -> Vec<f64> {
    (0..count).map(|_| BASE * ratio * (noise * random.normal()).exp()).collect()
}

fn judge(reference: &[f64], values: &[f64], question: &Question) -> Comparison {
    compare(reference, &[values], question).remove(0)
}

fn claims(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

/// How many of a thousand pairs, drawn by `pair`, are `wrong`.
fn of_a_thousand(
    seed: u64,
    mut pair: impl FnMut(&mut Random) -> [Vec<f64>; 2],
    wrong: impl Fn(&Comparison) -> bool,
) -> usize {
    let mut random = Random::new(seed);
    let mut is_wrong = |_: &usize| {
        let [reference, values] = pair(&mut random);
        wrong(&judge(&reference, &values, &Question::default()))
    };
    (0..1000).filter(|at| is_wrong(at)).count()
}

/// Noise as devices have it and as they should not: normal, with outliers, skewed, of unequal size,
/// of unequal numbers of repeats.
#[test]
fn of_a_thousand_equal_pairs_at_most_fifty_are_told_apart() {
    type Pair = fn(&mut Random) -> [Vec<f64>; 2];
    let pairs: [(&str, Pair); 7] = [
        ("normal", |random| [(); 2].map(|()| draw(random, 1.0, 0.01, 6))),
        ("much noise", |random| [(); 2].map(|()| draw(random, 1.0, 0.2, 6))),
        ("few repeats", |random| [(); 2].map(|()| draw(random, 1.0, 0.02, 4))),
        ("many repeats", |random| [(); 2].map(|()| draw(random, 1.0, 0.03, 18))),
        ("outliers", |random| {
            [(); 2].map(|()| {
                let mut values = draw(random, 1.0, 0.01, 6);
                values.iter_mut().filter(|_| random.below(10) == 0).for_each(|value| *value *= 0.8);
                values
            })
        }),
        ("skewed", |random| {
            [(); 2].map(|()| (0..6).map(|_| BASE * (1.0 + 0.03 * random.uniform().ln())).collect())
        }),
        ("unequal noise", |random| [draw(random, 1.0, 0.01, 6), draw(random, 1.0, 0.03, 6)]),
    ];
    for (name, pair) in pairs {
        for seed in 1..=3 {
            let wrong = of_a_thousand(seed, pair, |comparison| claims(comparison.verdict));
            assert!(wrong <= 50, "{name}, seed {seed}: {wrong} of 1000 equal pairs told apart");
        }
    }
}

/// Two sets of six measured round by round, each round slowed or not as the machine pleases.
fn rounds(random: &mut Random, ratio: f64, noise: f64, phases: f64) -> [Vec<f64>; 2] {
    let phases: Vec<f64> = (0..6).map(|_| (phases * random.normal()).exp()).collect();
    [1.0, ratio].map(|ratio| {
        let values = draw(random, ratio, noise, 6);
        values.into_iter().zip(&phases).map(|(value, phase)| value * phase).collect()
    })
}

const BY_ROUND: Question = Question {
    confidence: Confidence::Percent95,
    equal_within: 0.01,
    resolution: 0.0,
    less_is_better: false,
    by_round: true,
};

#[test]
fn by_round_equal_pairs_are_told_apart_no_more_often_and_three_percent_found_through_phases() {
    let count = |ratio: f64, phases: f64, wanted: &dyn Fn(Verdict) -> bool, question: &Question| {
        let mut random = Random::new(8);
        let mut verdict = || {
            let [reference, values] = rounds(&mut random, ratio, 0.01, phases);
            judge(&reference, &values, question).verdict
        };
        (0..1000).filter(|_| wanted(verdict())).count()
    };
    for phases in [0.0, 0.01, 0.2] {
        let wrong = count(1.0, phases, &claims, &BY_ROUND);
        assert!(wrong <= 60, "phases of {phases}: {wrong} of 1000 equal pairs told apart");
    }
    let faster = |verdict| verdict == Verdict::Better;
    let found = count(1.03, 0.0, &faster, &BY_ROUND);
    assert!(found >= 950, "without phases: found {found} of 1000");
    // Of such phases a test of the sets as they are sees nothing; of the rounds, those that all agree.
    let (apart, found) =
        (count(1.03, 0.2, &faster, &Question::default()), count(1.03, 0.2, &faster, &BY_ROUND));
    assert!(apart <= 50 && found >= 850, "through phases: {apart} and {found} of 1000");
}

#[test]
fn values_without_a_partner_are_left_out_by_round() {
    let (reference, values) = ([100.0, 50.0, 80.0, 77.0], [101.0, 51.0, 80.5]);
    let question = BY_ROUND;
    assert_eq!(judge(&reference, &values, &question), judge(&reference[..3], &values, &question));
}

#[test]
fn three_percent_at_one_percent_of_noise_are_found_with_six_repeats() {
    for seed in 1..=5 {
        let pair = |random: &mut Random| [draw(random, 1.0, 0.01, 6), draw(random, 1.03, 0.01, 6)];
        let missed = of_a_thousand(seed, pair, |comparison| comparison.verdict != Verdict::Better);
        assert!(missed <= 50, "seed {seed}: missed {missed} of 1000");
        let pair = |random: &mut Random| [draw(random, 1.0, 0.01, 6), draw(random, 0.97, 0.01, 6)];
        let missed = of_a_thousand(seed, pair, |comparison| comparison.verdict != Verdict::Worse);
        assert!(missed <= 50, "seed {seed}: missed {missed} of 1000");
    }
}

#[test]
fn what_differs_by_as_much_as_counts_is_seldom_called_equal_and_what_does_not_often() {
    let pair =
        |ratio: f64| move |random: &mut Random| [1.0, ratio].map(|ratio| draw(random, ratio, 0.005, 8));
    let equal = |comparison: &Comparison| comparison.verdict == Verdict::Equal;
    for ratio in [1.01, 1.0 / 1.01] {
        let wrong = of_a_thousand(1, pair(ratio), equal);
        assert!(wrong <= 75, "{wrong} of 1000");
    }
    let found = of_a_thousand(2, pair(1.0), equal);
    assert!(found >= 900, "{found} of 1000");
}

#[test]
fn a_family_claims_falsely_no_more_often_than_one_pair() {
    let mut random = Random::new(4);
    let mut wrong = || {
        let reference = draw(&mut random, 1.0, 0.02, 6);
        let sets: Vec<Vec<f64>> = (0..10).map(|_| draw(&mut random, 1.0, 0.02, 6)).collect();
        let sets: Vec<&[f64]> = sets.iter().map(Vec::as_slice).collect();
        compare(&reference, &sets, &Question::default()).iter().any(|one| claims(one.verdict))
    };
    let wrong = (0..1000).filter(|_| wrong()).count();
    assert!(wrong <= 50, "{wrong} of 1000 families");
}

/// A family of fifty still tells what is plain, though ranks of six cannot be that improbable.
#[test]
fn a_matrix_is_one_family_whatever_its_references() {
    let by = |ratio: f64| [100.0, 101.0, 99.0, 100.5, 99.5, 100.2].map(|value| value * ratio);
    let [low, high] = [by(1.0), by(7.0)];
    let [faster, slower] = [by(1.02), by(6.9)];
    let question = Question::default();
    let pairs: [(&[f64], &[f64]); 2] = [(&low, &faster), (&high, &slower)];
    let together = compare_pairs(&pairs, &question);
    for (one, (reference, values)) in together.iter().zip(pairs) {
        let [alone] = compare(reference, &[values], &question).try_into().unwrap();
        assert_eq!((one.change, one.t_p), (alone.change, alone.t_p));
        assert!(one.t_p_adjusted >= alone.t_p_adjusted);
    }
    assert!(together[0].t_p_adjusted > together[0].t_p || together[1].t_p_adjusted > together[1].t_p);
    assert!(together[0].change > Some(0.0) && together[1].change < Some(0.0));
}

#[test]
fn a_large_family_tells_what_is_plain() {
    let mut random = Random::new(6);
    let reference = draw(&mut random, 1.0, 0.01, 6);
    let sets: Vec<Vec<f64>> = (0..50).map(|_| draw(&mut random, 0.8, 0.01, 6)).collect();
    let sets: Vec<&[f64]> = sets.iter().map(Vec::as_slice).collect();
    let comparisons = compare(&reference, &sets, &Question::default());
    assert!(comparisons.iter().all(|one| one.verdict == Verdict::Worse));
}

#[test]
fn the_interval_of_the_change_holds_it() {
    let pair = |random: &mut Random| [draw(random, 1.0, 0.02, 6), draw(random, 1.05, 0.04, 8)];
    let outside = |comparison: &Comparison| {
        let (low, high) = comparison.interval.unwrap();
        !(low..=high).contains(&0.05)
    };
    let missed = of_a_thousand(1, pair, outside);
    assert!((25..=70).contains(&missed), "{missed} of 1000");
}

#[test]
fn as_many_more_repeats_as_told_likely_tell() {
    let mut random = Random::new(12);
    let (mut asked, mut told) = (0, 0);
    while asked < 200 {
        let (reference, values) = (draw(&mut random, 1.0, 0.02, 6), draw(&mut random, 1.02, 0.02, 6));
        let Verdict::NotProven(Outlook::Repeats(more)) =
            judge(&reference, &values, &Question::default()).verdict
        else {
            continue;
        };
        // What was seen is taken for the truth: draw again from that.
        let moments = [&reference, &values].map(|set| {
            crate::mean_difference::moments(&set.iter().map(|value| value.ln()).collect::<Vec<f64>>())
                .unwrap()
        });
        let again = moments.map(|(mean, variance)| {
            let value = |_| (mean + variance.sqrt() * random.normal()).exp();
            (0..6 + more).map(value).collect::<Vec<f64>>()
        });
        asked += 1;
        let verdict = judge(&again[0], &again[1], &Question::default()).verdict;
        told += usize::from(!matches!(verdict, Verdict::NotProven(_)));
    }
    assert!((145..=195).contains(&told), "{told} of {asked}");
}

const SLOW: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
const FAST: [f64; 6] = [110.0, 111.0, 109.0, 110.5, 109.5, 110.2];

#[test]
fn less_may_be_better() {
    assert_eq!(judge(&SLOW, &FAST, &Question::default()).verdict, Verdict::Better);
    let times = Question { less_is_better: true, ..Question::default() };
    assert_eq!(judge(&SLOW, &FAST, &times).verdict, Verdict::Worse);
    assert_eq!(judge(&FAST, &SLOW, &times).verdict, Verdict::Better);
    let change = judge(&SLOW, &FAST, &times).change.unwrap();
    assert!((change - 0.1).abs() < 0.001, "{change}");
}

#[test]
fn small_differences_that_are_real_count_as_none_if_so_declared() {
    let values = SLOW.map(|value| value * 1.015);
    let wide = Question { equal_within: 0.05, ..Question::default() };
    let comparison = judge(&SLOW, &values, &wide);
    assert_eq!((comparison.verdict, comparison.differs), (Verdict::Equal, true));
    assert_eq!(judge(&SLOW, &values, &Question::default()).verdict, Verdict::Better);
}

#[test]
fn what_the_resolution_hides_is_not_proven() {
    let coarse = Question { resolution: 0.2, ..Question::default() };
    let comparison = judge(&SLOW, &FAST, &coarse);
    assert_eq!(comparison.verdict, Verdict::NotProven(Outlook::Hopeless));
    let (low, high) = comparison.interval.unwrap();
    assert!(low < -0.08 && high > 0.3, "{low} {high}");
    let fine = Question { resolution: 0.005, ..Question::default() };
    assert_eq!(judge(&SLOW, &FAST, &fine).verdict, Verdict::Better);
}

#[test]
fn one_odd_repeat_does_not_decide() {
    // Student's t is sure of a difference that one repeat makes: their pooled deviation is small.
    let mut odd = [100.0; 30].map(|value: f64| value);
    odd.iter_mut().enumerate().for_each(|(at, value)| *value += (at % 3) as f64 * 0.01);
    let reference: Vec<f64> = odd.to_vec();
    let comparison =
        judge(&reference, &[100.0, 100.02, 103.0], &Question { equal_within: 0.0001, ..Question::default() });
    assert!(comparison.disagrees_with_ministat() && !comparison.differs, "{comparison:?}");
}

#[test]
fn few_values_are_judged_by_what_they_tell() {
    let single = judge(&[100.0], &[120.0], &Question::default());
    assert_eq!(single.verdict, Verdict::NotProven(Outlook::Unknown));
    assert_eq!((single.ministat, single.interval), (None, None));
    assert!((single.change.unwrap() - 0.2).abs() < 1e-9);
    // Three of each cannot be told apart by ranks: four can.
    let three = judge(&SLOW[..3], &FAST[..3], &Question::default());
    assert_eq!(three.verdict, Verdict::NotProven(Outlook::Repeats(1)));
    assert!(three.disagrees_with_ministat());
    assert_eq!(judge(&SLOW[..4], &FAST[..4], &Question::default()).verdict, Verdict::Better);
    assert!(compare(&SLOW, &[], &Question::default()).is_empty());
}

#[test]
fn values_that_have_no_logarithm_are_compared_as_they_are() {
    let question = Question { less_is_better: true, ..Question::default() };
    let lossless = judge(&[0.0; 6], &[0.1, 0.2, 0.1, 0.3, 0.2, 0.1], &question);
    assert_eq!((lossless.verdict, lossless.change), (Verdict::Worse, None));
    let from_below = judge(&[-1.0, -1.1, -0.9, -1.0], &[-2.0, -2.1, -1.9, -2.2], &question);
    assert_eq!(from_below.verdict, Verdict::Better);
    assert!((from_below.change.unwrap() + 1.05).abs() < 1e-9);
    let nothing = judge(&[0.0; 6], &[0.0; 6], &question);
    assert_eq!(
        (nothing.verdict, nothing.change),
        (Verdict::Equal, None),
        "as of any values that are all the same"
    );
    let once = judge(&[0.0; 6], &[0.0, 0.0, 0.0, 0.0, 0.0, 0.1], &question);
    assert!(matches!(once.verdict, Verdict::NotProven(Outlook::Repeats(_))), "{once:?}");
}

#[test]
fn a_regression_is_one_beyond_the_bound() {
    let question = Question::default();
    let by = |ratio: f64| SLOW.map(|value| value * ratio);
    let found = |ratio: f64| regresses(&SLOW, &[&by(ratio)], 0.03, &question)[0];
    assert_eq!([0.8, 0.95, 0.975, 1.0, 1.1].map(found), [true, true, false, false, false]);
    let times = Question { less_is_better: true, ..question };
    let found = |ratio: f64| regresses(&SLOW, &[&by(ratio)], 0.03, &times)[0];
    assert_eq!([0.8, 1.0, 1.025, 1.05].map(found), [false, false, false, true]);
}

#[test]
fn values_that_the_truth_may_exceed_are_not_equal_and_not_proven_to_be_less() {
    let further = Verdict::NotProven(Outlook::Further);
    let around = |value: f64| [0.999, 1.0, 1.001, 0.9995, 1.0005, 1.0].map(|factor| value * factor);
    let verdict = |value: f64, open, less_is_better| {
        let question = Question { less_is_better, ..Question::default() };
        judge(&around(100.0), &around(value), &question).with_open_ends(open, less_is_better).verdict
    };
    let (neither, reference, set, both) = ([false; 2], [true, false], [false, true], [true; 2]);
    assert_eq!(verdict(100.0, neither, false), Verdict::Equal);
    assert_eq!([reference, set, both].map(|open| verdict(100.0, open, false)), [further; 3]);
    let greater = [neither, set, reference, both].map(|open| verdict(200.0, open, false));
    assert_eq!(greater, [Verdict::Better, Verdict::Better, further, further]);
    let less = [neither, reference, set, both].map(|open| verdict(50.0, open, false));
    assert_eq!(less, [Verdict::Worse, Verdict::Worse, further, further]);
    let slower = [neither, set, reference, both].map(|open| verdict(200.0, open, true));
    assert_eq!(slower, [Verdict::Worse, Verdict::Worse, further, further]);
}
