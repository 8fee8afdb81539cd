//! Decides when the connection's task gets a turn before a batch is closed. That task delivers one packet at a time
//! and reads on once it is taken, so a turn collects packets that arrived together. If packets arrive one by one, a
//! turn only costs a wake-up.

/// Maximum number of batches in a row that are closed without a turn.
const MAX_PAUSE: u8 = 32;

#[derive(Debug, Default)]
pub(super) struct YieldPolicy {
    /// Whether the connection has had a turn since the last packet.
    given: bool,
    /// How many batches skip the turn after the next futile one, and how many still do so now.
    pause: u8,
    left: u8,
}

impl YieldPolicy {
    /// Records a packet.
    pub(super) fn packet(&mut self) {
        if std::mem::take(&mut self.given) {
            self.pause = 0;
        }
    }

    /// Whether to give the task a turn now that nothing more is ready.
    pub(super) fn give(&mut self) -> bool {
        if self.given {
            self.pause = self.pause.saturating_mul(2).clamp(1, MAX_PAUSE);
            self.left = self.pause;
            return false;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.given = true;
        true
    }

    /// Records the end of a batch.
    pub(super) fn close(&mut self) {
        self.given = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the connection gets a turn before a batch of one packet is closed. more: whether a turn brings another.
    fn gets_a_turn(turns: &mut YieldPolicy, more: bool) -> bool {
        turns.packet();
        let given = turns.give();
        if given && more {
            turns.packet();
        } else if given {
            assert!(!turns.give(), "one turn is enough");
        }
        turns.close();
        given
    }

    #[test]
    fn fruitless_yields_become_rare_but_never_stop() {
        let mut turns = YieldPolicy::default();
        let given: Vec<_> = (0..200).filter(|_| gets_a_turn(&mut turns, false)).collect();
        assert!(given.len() < 15, "{given:?}");
        assert!(given.windows(2).all(|pair| pair[1] - pair[0] <= usize::from(MAX_PAUSE) + 1), "{given:?}");
        assert!(given.last().is_some_and(|last| *last > 150), "{given:?}");
    }

    #[test]
    fn productive_yield_is_repeated_immediately() {
        let mut turns = YieldPolicy::default();
        let mut packets = || {
            turns.packet();
            let mut packets = 1;
            while packets < 10 && turns.give() {
                turns.packet();
                packets += 1;
            }
            turns.close();
            packets
        };
        assert_eq!((packets(), packets()), (10, 10));
    }
}
