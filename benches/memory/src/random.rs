//! Random numbers that are the same on every machine and in every year.

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.fraction() * end as f64) as usize
    }

    /// `e` to the power of a normal number with this deviation.
    pub fn log_normal(&mut self, deviation: f64) -> f64 {
        let (radius, angle) = (1.0 - self.fraction(), self.fraction());
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        (deviation * normal).exp()
    }

    /// The numbers below `count` in some order.
    pub fn shuffled(&mut self, count: usize) -> Vec<u32> {
        let mut items: Vec<u32> = (0..count as u32).collect();
        for last in (1..count).rev() {
            items.swap(last, self.below(last + 1));
        }
        items
    }
}

/// Numbers from 0, the one of rank k with a probability proportional to 1 / k to the power of an exponent.
pub struct Zipf(Vec<f64>);

impl Zipf {
    pub fn new(count: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut add = |rank: usize| {
            sum += (rank as f64).powf(-exponent);
            sum
        };
        Self((1..=count).map(&mut add).collect())
    }

    pub fn draw(&self, random: &mut Random) -> usize {
        let sum = self.0[self.0.len() - 1];
        let at = random.fraction() * sum;
        self.0
            .partition_point(|below| *below <= at)
            .min(self.0.len() - 1)
    }
}
