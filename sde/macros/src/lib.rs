//! The derive and attribute macros of SDE
