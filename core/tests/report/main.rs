//! The report validator (specification 2.12), tested by the vectors that all three languages read, by
//! mutations of the schema, by arbitrary bytes, and by snapshots of its diagnostics.

mod diagnostics;
mod model;
mod robustness;
mod schema;
mod vectors;
