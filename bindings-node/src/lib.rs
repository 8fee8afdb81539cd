//! The engine of the Node package: registers what `src-ts/engine.ts` types. Contains no behavior of its own:
//! requests, streams, reports and the program are the core's; JavaScript objects are made in `src-ts/`.

mod answer;
mod callbacks;
mod check;
mod cli;
mod client;
mod deliveries;
mod error;
mod files;
mod generated;
mod headers;
mod inline_start;
mod lifetime;
mod lines;
#[cfg(debug_assertions)]
mod on_purpose;
mod options;
mod report;
mod report_pool;
mod stream;
mod text;
mod times;
mod values;
mod videos;
mod webhook;
mod worker;
