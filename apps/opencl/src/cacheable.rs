//! Whether the binary of a program may be kept, and why not.

use std::fmt;

/// Why a program is built anew each time it is asked for.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotCacheable {
    /// A compiler may read more than the text and the files that are followed, or the time.
    #[non_exhaustive]
    Reads {
        /// The text: a file, or the name of the program.
        at: String,
        /// The construct that is found there.
        why: String,
    },
    /// An option that may make the compiler use files that are not followed.
    #[non_exhaustive]
    Option {
        /// The option.
        option: String,
    },
    /// A switch of the driver that holds options or names a file.
    #[non_exhaustive]
    Switch {
        /// The environment variable.
        name: String,
        /// Its value.
        value: String,
    },
    /// A part of a linked program is not cacheable.
    Part(Box<NotCacheable>),
    /// A foreign program for which the driver does not tell all that it was made from.
    #[non_exhaustive]
    Foreign {
        /// The part that is missing, was not understood, or may have changed since.
        why: String,
    },
}

sde::debug_as_said!(NotCacheable);

impl fmt::Display for NotCacheable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reads { at, why } => write!(f, "{at} {why}"),
            Self::Option { option } if !option.starts_with(['-', '@']) => write!(
                f,
                "`{option}` stands alone among the options; `define` takes values with blanks"
            ),
            Self::Option { option } if option.contains(['"', '\'', '\\']) => write!(
                f,
                "drivers read the option {option} in different ways; `define` takes any value"
            ),
            Self::Option { option } => write!(
                f,
                "the option {option} is not known to leave alone files that are not followed"
            ),
            Self::Switch { name, value } => write!(
                f,
                "{name}={value:?} in the environment may have the driver read a file, or any other variable; for options there is SDE_OPENCL_BUILD_OPTIONS"
            ),
            Self::Part(why) => write!(f, "a part of it: {why}"),
            Self::Foreign { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for NotCacheable {}
