//! What the generator writes.

#[rustfmt::skip]
pub(crate) mod calls;
#[rustfmt::skip]
pub(crate) mod client;
