//! Unpredictable random numbers for keys, secrets and signatures.

use ring::rand::{SecureRandom as _, SystemRandom};

/// 256 random bits from the system.
pub(crate) fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the system has a source of random numbers");
    bytes
}
