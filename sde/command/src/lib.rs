//! Runs of other programs, remembered by SDE.

#![deny(unsafe_code)]

mod folder;
mod process;
mod program;
mod tree;
