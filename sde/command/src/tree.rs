//! What a folder of inputs holds.
