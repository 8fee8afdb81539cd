//! The gateway over real sockets, rule by rule. Each test cites the section of the specification it holds to.

mod auth;
mod chat;
mod connections;
mod faults;
mod files;
mod idempotency;
mod images;
mod models;
mod native;
mod origins;
mod requests;
mod responses;
mod shutdown;
mod support;
mod videos;
mod webhooks;
