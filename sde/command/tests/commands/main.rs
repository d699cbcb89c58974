//! Commands as a program's author uses them, on scripts of `sh`.

mod files;
mod keys;
mod kit;
mod refusals;
mod rules;
mod stores;
