//! Unpredictable random numbers for keys, secrets and signatures.

use ring::rand::{SecureRandom as _, SystemRandom};

/// 256 random bits from the system.
#[expect(clippy::missing_panics_doc, reason = "every system has random numbers")]
pub fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the system has a source of random numbers");
    bytes
}
