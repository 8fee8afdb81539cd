//! Records what has been seen of an object.

/// Members of an object and tests of conditions, one bit each.
#[derive(Debug, Default)]
pub(crate) struct Members {
    seen: u64,
    failed: u64,
}

impl Members {
    /// Records a member; its name must not have occurred before.
    #[inline]
    pub(crate) fn once(&mut self, index: u32) -> Option<()> {
        let bit = 1 << index;
        if self.seen & bit != 0 {
            return None;
        }
        self.seen |= bit;
        Some(())
    }

    #[inline]
    pub(crate) fn has(&self, mask: u64) -> bool {
        self.seen & mask == mask
    }

    #[inline]
    pub(crate) fn test(&mut self, index: u32, passes: bool) {
        self.failed |= u64::from(!passes) << index;
    }

    /// Whether a test passes; it does if its member is missing.
    #[inline]
    pub(crate) fn passes(&self, index: u32) -> bool {
        self.failed & (1 << index) == 0
    }
}
