//! Running a program, and ending all that it started.
