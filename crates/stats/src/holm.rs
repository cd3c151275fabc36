//! Several tests at once: their p enter; those that hold for all of them together leave.

/// Each p as large as it must be so that the chance of any false claim among all stays below the
/// level it is held against (S. Holm, A simple sequentially rejective multiple test procedure,
/// Scandinavian Journal of Statistics 6, 1979).
#[must_use]
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0f64;
    for (rank, at) in order.into_iter().enumerate() {
        largest = largest.max(p[at] * (p.len() - rank) as f64).min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_counts_for_all_and_none_falls_behind_a_smaller_one() {
        assert_eq!(adjusted(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(adjusted(&[0.5, 0.9]), [1.0, 1.0]);
        assert_eq!(adjusted(&[0.2]), [0.2]);
        assert!(adjusted(&[]).is_empty());
    }
}
