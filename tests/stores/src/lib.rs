//! Store servers, each started for a test in its own folder: no service of the system is used or changed. They end with the test,
//! also when it panics or is killed; a test that is killed leaves the folder behind.

mod bucket;
mod network;
mod postgres;
mod redis;
mod small_disk;
mod unprivileged;

pub use self::bucket::{Bucket, BucketMode};
pub use self::network::{Death, Network, Way};
pub use self::postgres::Postgres;
pub use self::redis::Redis;
pub use self::small_disk::{make_read_only, may_mount, mount};
