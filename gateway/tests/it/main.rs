//! The gateway over real sockets, rule by rule. Each test cites the section of the specification it holds to.

mod auth;
mod budget;
mod chat;
mod connections;
mod effects;
mod faults;
mod files;
mod idempotency;
mod images;
mod kept_responses;
mod models;
mod native;
mod origins;
mod refusals;
mod requests;
mod responses;
mod rows;
mod shutdown;
mod support;
mod tools;
mod videos;
mod webhooks;
