//! The commands.

mod diff;
mod doctor;
mod explain;
mod export;
mod gc;
mod ls;
mod raw;
mod show;
mod stats;
mod verify;

use lexopt::prelude::*;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::help;
use crate::output::Output;

/// What does a command.
pub type Command = fn(Arguments, &mut Output) -> Result<(), Failure>;

pub const COMMANDS: [(&str, Command); 9] = [
    ("ls", ls::run),
    ("show", show::run),
    ("explain", explain::run),
    ("verify", verify::run),
    ("diff", diff::run),
    ("export", export::run),
    ("stats", stats::run),
    ("gc", gc::run),
    ("doctor", doctor::run),
];

/// Does what the command line says.
pub fn run(mut parser: lexopt::Parser, out: &mut Output) -> Result<(), Failure> {
    let name = match parser.next()? {
        None => {
            return Err(Failure::told(
                "what is to be done? `sde --help` lists the commands",
            ));
        }
        Some(Short('h') | Long("help")) => return help::write(out, help::ALL),
        Some(Short('V') | Long("version")) => {
            return out.line(concat!("sde ", env!("CARGO_PKG_VERSION")));
        }
        Some(Value(name)) => name.to_string_lossy().into_owned(),
        Some(option) => return Err(option.unexpected().into()),
    };
    if name == "help" {
        let of = parser.next()?.map(|of| match of {
            Value(of) => of.to_string_lossy().into_owned(),
            _ => String::new(),
        });
        return help::write(
            out,
            of.as_deref()
                .map_or(Some(help::ALL), help::of)
                .unwrap_or(help::ALL),
        );
    }
    let Some((name, command)) = COMMANDS.iter().find(|(known, _)| *known == name) else {
        return Err(Failure::told(format!(
            "there is no command \"{name}\"; `sde --help` lists those there are"
        )));
    };
    let rest: Vec<_> = parser.raw_args()?.collect();
    let asks = |argument: &std::ffi::OsString| argument == "--help" || argument == "-h";
    if rest.iter().any(asks) {
        return help::write(out, help::of(name).unwrap_or(help::ALL));
    }
    command(Arguments::new(lexopt::Parser::from_args(rest), name), out)
}

/// The name of an app as a person gives it.
struct App {
    name: String,
    is_beginning: bool,
}

impl App {
    fn new(given: String) -> Self {
        match given.strip_suffix('*') {
            Some(beginning) => Self {
                name: beginning.to_owned(),
                is_beginning: true,
            },
            None => Self {
                name: given,
                is_beginning: false,
            },
        }
    }

    fn is(&self, app: &str) -> bool {
        match self.is_beginning {
            true => app.starts_with(&self.name),
            false => app == self.name,
        }
    }
}

/// A version as it was declared, or the first digits of a source's digest.
fn code(code: &sde::CodeId) -> String {
    match code {
        sde::CodeId::Version(version) => version.to_string(),
        sde::CodeId::Source(digest) => {
            format!("src {}", digest.short().get(..8).unwrap_or_default())
        }
    }
}
