//! Native module of the Node package: registers what `src-ts/native.ts` types. Holds no behaviour of its own:
//! requests, streams, reports and the program are the core's; JavaScript objects are made in `src-ts/`.

mod callbacks;
mod check;
mod cli;
mod client;
mod error;
mod files;
mod lifetime;
#[cfg(debug_assertions)]
mod on_purpose;
mod options;
mod report;
mod response;
mod stream;
mod videos;
mod webhook;
