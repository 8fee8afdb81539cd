//! The report validator (specification 2.12), tested by the vectors that all three languages read, by mutations of the schema, by
//! arbitrary bytes, and by snapshots of its diagnostics; and the documents generated from reports.

mod bases;
mod bounds;
mod canonical;
mod checker;
mod diagnostics;
mod diff;
mod examples;
mod formats;
mod forms;
mod model;
mod pages;
mod pool;
mod robustness;
mod rules;
mod schema;
mod vectors;
