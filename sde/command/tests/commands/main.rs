//! Commands as a program's author uses them, on scripts of `sh`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure is the point")]

mod attempts;
mod files;
mod keys;
mod kit;
mod refusals;
mod rules;
mod signals;
mod stores;
