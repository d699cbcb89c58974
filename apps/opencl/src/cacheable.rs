//! Whether the binary of a program may be kept, and why not.

use std::fmt;

/// Why a program is built anew each time it is asked for.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotCacheable {
    /// What the source includes is computed while it is compiled.
    ComputedInclude {
        /// Where: file and line.
        at: String,
        /// The line.
        line: String,
    },
    /// The source reads a file in a way that is not followed: the next one of a name, or one that is no text.
    Directive {
        /// Where: file and line.
        at: String,
        /// The line.
        line: String,
    },
    /// The source has something that may be part of a directive or a comment, and that compilers read in different ways.
    Ambiguous {
        /// Where: file and line.
        at: String,
        /// What it has.
        what: &'static str,
    },
    /// Files include one another deeper than compilers go.
    TooDeep {
        /// Where: file and line.
        at: String,
    },
    /// The source asks which files there are, or for the time.
    Volatile {
        /// Where: file and line.
        at: String,
        /// The word that asks.
        word: &'static str,
    },
    /// An option that is not one of those known to read and write no file that is not followed.
    Option {
        /// The option.
        option: String,
    },
    /// A part of a linked program is not cacheable.
    Part(Box<NotCacheable>),
    /// A foreign program was built, and here it can't be told from what.
    NotFollowed {
        /// What was not found, read or understood, or may have changed since.
        why: String,
    },
    /// A foreign program does not give the source or the intermediate language it was made from.
    NoSource,
    /// A foreign program is not one that kernels can be had from.
    NotExecutable,
}

sde::debug_as_said!(NotCacheable);

impl fmt::Display for NotCacheable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ComputedInclude { at, line } => {
                write!(f, "{at} includes what a macro says: `{line}`")
            }
            Self::Directive { at, line } => {
                write!(
                    f,
                    "{at} reads a file in a way that is not followed: `{line}`"
                )
            }
            Self::Ambiguous { at, what } => {
                write!(f, "{at} has {what}, which compilers read in different ways")
            }
            Self::TooDeep { at } => write!(
                f,
                "{at} includes a file that is included by files too deep in one another for compilers"
            ),
            Self::Volatile { at, word } => write!(
                f,
                "{at} has {word}, which is another from one build to the next"
            ),
            Self::Option { option } if !option.starts_with(['-', '@', '"']) => write!(
                f,
                "`{option}` stands alone among the options; a value with a blank is given in quotes, or by `define`"
            ),
            Self::Option { option } => {
                write!(
                    f,
                    "the option {option} is not known to leave alone files that are not followed"
                )
            }
            Self::Part(why) => write!(f, "a part of it: {why}"),
            Self::NotFollowed { why } => {
                write!(
                    f,
                    "it was built, and here it can't be told from what: {why}"
                )
            }
            Self::NoSource => f.write_str("it does not give what it was made from"),
            Self::NotExecutable => f.write_str("it was not built, or is a library"),
        }
    }
}

impl std::error::Error for NotCacheable {}
