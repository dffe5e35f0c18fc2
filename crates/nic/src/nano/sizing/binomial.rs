//! The binomial distribution by additions, multiplications and divisions alone.

/// The probabilities of 0 to `n` of `n` messages, each with probability `p`.
pub(super) fn binomial(n: u32, p: f64) -> Vec<f64> {
    let p = p.clamp(0.0, 1.0);
    let mut weights = vec![0.0; n as usize + 1];
    // From the likeliest number both ways, by the ratio of neighbours: nothing overflows.
    let mode = ((f64::from(n) + 1.0) * p) as usize;
    let mode = mode.min(n as usize);
    weights[mode] = 1.0;
    for k in mode + 1..weights.len() {
        weights[k] = weights[k - 1] * ratio(n, k, p);
    }
    for k in (0..mode).rev() {
        weights[k] = weights[k + 1] / ratio(n, k + 1, p);
    }
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// The probability of `k` by that of `k` - 1.
fn ratio(n: u32, k: usize, p: f64) -> f64 {
    (f64::from(n) - k as f64 + 1.0) / k as f64 * p / (1.0 - p)
}

/// The least number that a count with these `probabilities` exceeds by no more than `allowed`, on
/// average.
pub(super) fn enough(probabilities: &[f64], allowed: f64) -> u32 {
    let (mut excess, mut above) = (0.0, 0.0);
    let mut bound = probabilities.len() as u32 - 1;
    while bound > 0 {
        above += probabilities[bound as usize];
        excess += above;
        if excess > allowed {
            break;
        }
        bound -= 1;
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against Pascal's triangle.
    #[test]
    fn probabilities_are_those_of_coin_tosses() {
        let mut row = vec![1.0];
        for n in 0..60 {
            for (found, expected) in binomial(n, 0.3).iter().zip(&row) {
                assert!((found - expected).abs() < 1e-14, "{n}: {found} {expected}");
            }
            let shifted = std::iter::once(&0.0).chain(&row);
            row = row.iter().chain([&0.0]).zip(shifted).map(|(a, b)| 0.7 * a + 0.3 * b).collect();
        }
        assert_eq!(binomial(3, 1.0), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(binomial(3, 0.0), [1.0, 0.0, 0.0, 0.0]);
        assert!((binomial(4096, 0.5).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn enough_is_exceeded_by_little() {
        assert_eq!(enough(&[0.0, 0.0, 1.0], 0.0), 2);
        assert_eq!(enough(&[0.0, 0.0, 1.0], 1.0), 1);
        assert_eq!(enough(&[0.25, 0.5, 0.25], 0.25), 1, "two come once in four times");
        assert_eq!(enough(&[0.25, 0.5, 0.25], 1.0), 0);
    }
}
