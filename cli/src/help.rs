//! The texts of `--help`.

use crate::failure::Failure;
use crate::output::Output;

/// Of the program.
pub const ALL: &str = "\
Looks into stores of the SDE framework: checkpoints, archives, kernel caches.

usage: sde COMMAND STORE [ARGUMENT]... [OPTION]...

  ls STORE                     what is in it: a line for each entry
  show STORE KEY               one entry: how it was made, and its results
  explain STORE KEY [KEY2]     why it is not the same as the nearest earlier one
  verify STORE                 checks every checksum, says what is damaged
  diff STORE STORE2            what is in one only, or is not the same in both
  export STORE KEY [NAME]      results as CBOR, JSON or NumPy files
  stats STORE                  how many entries of which app, sizes and costs,
                               what each process did
  gc STORE                     makes room: the only command that changes a store
  doctor DIR                   which guarantees this file system gives a store

`sde COMMAND --help` lists the options of a command. KEY is a key or the
beginning of one, as `ls` shows it.

  --json       JSON in place of text
  --help       this text
  --version    the version of the program

Exit status: 0 all is well, 1 something was found damaged or different, 2 what
was asked for makes no sense or can't be done.
";

/// Of a command.
pub fn of(command: &str) -> Option<&'static str> {
    Some(match command {
        "ls" => {
            "\
What is in a store: a line for each entry, the latest first. Of a kernel cache,
which may be given as its own folder: device, driver, options, kernels, size of
the binary, time of the build, how often it was loaded and when last.

usage: sde ls STORE [options]

  --app NAME        only of this app; NAME may end in *
  --class CLASS     only with results of this class: result, intermediate or
                    scratch
  --since WHEN      only what was made since: 90s, 15m, 2h, 3d or 1w ago, or a
                    day, or a day and a time in UTC (2026-11-21T16:00)
  --until WHEN      only what was made until then
  --sort BY         by time (latest first), size, cost (largest first) or app
  --limit N         only the first N lines; by time those that were saved
                    last, and no more is read than it takes
  --all             also what was replaced by a later run, or marked as not to
                    be used
  --json            an object for each entry, a line each
"
        }
        "show" => {
            "\
One entry: the record of how it was made, and its results in short form. Their
checksums are verified.

usage: sde show STORE KEY [options]

  --all             all computations of this key, not only the latest
  --json            one object
"
        }
        "explain" => {
            "\
Why an entry is another than the nearest earlier one of its app, and so was
computed: which input, field, parameter, sub-app, callee, helper or version
differs, and both values. The nearest is one of its own key, or else the one
from which the fewest inputs and settings differ.

usage: sde explain STORE KEY [KEY2] [options]

KEY2 is the entry to compare it with.

  --json            one object
"
        }
        "verify" => {
            "\
Reads everything in a store and verifies every checksum. Says exactly what is
damaged, and what a killed writer left unfinished, which is no damage.

usage: sde verify STORE [options]

  --quiet           nothing but the exit status
  --json            one object
"
        }
        "diff" => {
            "\
What two stores do not have in common: entries in one only, and results that are
not the same bytes. Compares digests; no value is read.

usage: sde diff STORE STORE2 [options]

  --app NAME        only of this app; NAME may end in *
  --json            one object
"
        }
        "export" => {
            "\
Takes results out of a store, without the program that made them.

usage: sde export STORE KEY [NAME] --format FORMAT --to FILE [options]

NAME is the result; by default all, or the only one.

  --format cbor     the bytes as they are stored; of several, a map by name
  --format json     as text; NaN and infinities as strings
  --format npy      one array, for numpy.load
  --format npz      every array there is, also in fields of values, for
                    numpy.load
  --format raw      what an output file holds, an array of bytes or a text, as
                    it is
  --file N          which of several output files
  --to FILE         where to; - is standard output
  --force           FILE may be there already, and is replaced
"
        }
        "stats" => {
            "\
How many entries there are of which app, their sizes and what they cost; the
files of each class; the generations.

usage: sde stats STORE [options]

  --json            one object
"
        }
        "gc" => {
            "\
Makes room: copies what counts to new segments and drops what was replaced. With
a limit, gives up intermediates and scratch too. Others may use the store
meanwhile. On a full disk what was replaced goes first, and what is of no use.

usage: sde gc STORE [options]

  --dry-run         only reads, and says what would be replaced and removed
  --max-bytes SIZE  gives up intermediates and scratch until they have at most
                    SIZE, as 500M or 20G (powers of 1024). Results are not
                    counted, nor are files that are being written or the bytes
                    of no use that stay in files not worth replacing (an eighth)
                    APP=SIZE is for one app; several have commas between them
  --min-entry SIZE  gives up entries whose values have fewer bytes; APP=SIZE too
  --max-entry SIZE  gives up entries whose values have more bytes; APP=SIZE too
  --max-age AGE     gives up what was saved, or used last, so long ago: 12h, 30d
                    or 8w; APP=AGE too
  --policy POLICY   which go first for --max-bytes: lru, the least recently used
                    (the default), or fifo, those saved first; APP=POLICY too.
                    What nobody used counts as used when it was saved
  --results         the limits count results, and give them up, too; without
                    this they never go, but for the programs of a kernel cache
  --results-of APP  the same for the results of one app
  --grace TIME      how long files that were replaced stay for those who read
                    them: 30s, 10m (the default), 2h; 0s if there is nobody
  --trust-others    also a store that belongs to someone else, or that others
                    can write to
  --json            one object
"
        }
        "doctor" => {
            "\
Tries what a store needs of a file system, in a folder of its own that is
removed again, and says which guarantees hold.

usage: sde doctor DIR [options]

  --json            one object
"
        }
        _ => return None,
    })
}

/// Writes a text. On a narrow terminal a line goes on below, where its second column is.
pub fn write(out: &mut Output, text: &str) -> Result<(), Failure> {
    text.lines()
        .try_for_each(|line| out.wrapped(line, second_column(line)))
}

fn second_column(line: &str) -> usize {
    let name = line.trim_start();
    let margin = line.len() - name.len();
    let gap = name.find("  ").filter(|_| margin > 0);
    gap.map_or(margin, |gap| line.len() - name[gap..].trim_start().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;

    /// The list in the help is one line a command, and has no other.
    #[test]
    fn each_command_is_told_of() {
        let names = COMMANDS.map(|(command, _)| command);
        let lines = ALL.lines().filter_map(|line| line.strip_prefix("  "));
        let listed: Vec<&str> = lines
            .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(listed, names);
        let guide = include_str!("../../docs/guide/05-program.md");
        for name in names {
            let usage = format!("usage: sde {name} ");
            assert!(of(name).is_some_and(|text| text.contains(&usage)), "{name}");
            assert!(guide.contains(&format!("\n| `sde {name} ")), "{name}");
        }
    }

    /// Half a sentence was missing on a terminal of 80 columns.
    #[test]
    fn the_texts_fit_an_ordinary_terminal() {
        let of_commands = COMMANDS.map(|(command, _)| of(command).expect("each has one"));
        for line in of_commands
            .iter()
            .chain(&[ALL])
            .flat_map(|text| text.lines())
        {
            assert!(line.len() <= 80, "{line}");
        }
    }

    #[test]
    fn what_a_line_goes_on_below() {
        assert_eq!(second_column("  --all             also"), 20);
        assert_eq!(second_column("                    also"), 20);
        assert_eq!(second_column("usage: sde ls"), 0);
        assert_eq!(second_column(""), 0);
    }
}
