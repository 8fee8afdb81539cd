//! Deterministic numbers derived from a text: the source of all variety in the simulator, so that equal requests get
//! equal answers.

/// A number generator seeded by a text (FNV-1a, then SplitMix64). Not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn of(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound`, exclusive; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// A number from 0 to 1, exclusive.
    pub(crate) fn fraction(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or(0)) / 4_294_967_296.0
    }
}
