//! Random numbers that can be had again: the seed is printed, and shown where the test fails.

use std::{
    env,
    hash::{BuildHasher, RandomState},
};

/// SplitMix64.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Of the seed in `ST2_TEST_SEED`, or of any.
    pub fn seeded() -> Self {
        let given = env::var("ST2_TEST_SEED").ok();
        let seed =
            given.map_or_else(|| RandomState::new().hash_one(0), |seed| seed.parse().unwrap());
        println!("ST2_TEST_SEED={seed}");
        Self(seed)
    }

    /// A number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as usize % end
    }
}
