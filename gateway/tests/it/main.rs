//! The gateway over real sockets, rule by rule. Each test cites the section of the specification it holds to.

mod auth;
mod chat;
mod faults;
mod files;
mod images;
mod models;
mod native;
mod refusals;
mod requests;
mod responses;
mod support;
mod videos;
mod webhooks;
