//! What identifies a program.
