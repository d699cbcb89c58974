//! The derive and attribute macros of SDE

#![forbid(unsafe_code)]
