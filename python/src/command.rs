//! Runs of other programs, as the crate `sde::command` makes them.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sde::command::{CommandError, Ran as Done, Stop, Trace};
use sde::{CancelToken, Data, Handle, Sde};

use crate::call::{self, Stay};
use crate::read::{self, How};
use crate::store::Store;
use crate::{current, text_of};

/// The signals that a program is sent on the first Ctrl-C, the second, and all others.
const INTERRUPTS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGKILL];

/// A file as Python names it: a path, or its content.
#[derive(FromPyObject)]
enum Content {
    Bytes(Vec<u8>),
    Path(PathBuf),
}

/// A command that is made of what a user said.
#[pyclass(frozen, module = "sde._sde")]
pub(crate) struct Command {
    command: sde::Command,
}

/// What a run gave, or what went wrong: a word for its kind, the text, the key, the exit status, the rules and the run.
type Made = (Option<Ran>, Option<Wrong>);
type Peeked = (Option<(String, String)>, Option<Wrong>);
type Wrong = (
    &'static str,
    String,
    Option<String>,
    i32,
    Vec<String>,
    Option<Ran>,
);

#[pymethods]
impl Command {
    /// A command of the options that are set; the names are those of `_command.py`.
    #[new]
    fn new(program: String, args: Vec<String>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut command = sde::Command::new(program).args(args);
        for (name, value) in options {
            command = with(command, &name.extract::<String>()?, &value)?;
        }
        Ok(Self { command })
    }

    /// Gives the remembered run, or runs the program.
    fn run(&self, py: Python<'_>, store: Option<&Store>) -> PyResult<Made> {
        let handle = handle(py, store)?;
        let (stop, cancel) = (Stop::new(), CancelToken::new());
        let command = self.command.clone().stop(&stop);
        let handle = handle.with_cancel(&cancel);
        let run = move || command.run(&handle);
        let made = if call::is_main_thread(py)? {
            let interrupt = |count: usize| {
                stop.send(INTERRUPTS[count.min(INTERRUPTS.len() - 1)]);
                cancel.cancel();
            };
            call::on_main(py, channel(), run, interrupt)?
        } else {
            Stay::within(|| py.detach(run))
        };
        Ok(match made {
            Ok(ran) => (Some(Ran(ran)), None),
            Err(error) => (None, Some(wrong(error))),
        })
    }

    /// What a run would do, and its key.
    fn peek(&self, py: Python<'_>, store: Option<&Store>) -> PyResult<Peeked> {
        let handle = handle(py, store)?;
        let peek = py.detach(|| self.command.peek(&handle));
        Ok(match peek {
            Ok(peek) => (Some((peek.key().to_string(), peek.to_string())), None),
            Err(error) => (None, Some(wrong(error))),
        })
    }
}

/// The handle of the run that this code is in, or of the store; without a store nothing is remembered.
fn handle(py: Python<'_>, store: Option<&Store>) -> PyResult<Handle> {
    let Some(store) = store else {
        return Ok((*Sde::new()).clone());
    };
    let opened = store.opened(py)?;
    let handle = current::handle(py, opened.number)?;
    Ok(handle.unwrap_or_else(|| (*opened.sde).clone()))
}

fn wrong(error: CommandError) -> Wrong {
    let (key, status) = (error.key().map(|key| key.to_string()), error.exit_status());
    let text = text_of(&error);
    let (kind, rules, ran) = match error {
        CommandError::Refused { .. } | CommandError::Rule(_) => ("refused", Vec::new(), None),
        CommandError::Failed(failed) => ("failed", failed.rules, Some(Ran(failed.ran))),
        CommandError::Untraced(untraced) => ("untraced", Vec::new(), Some(Ran(untraced.ran))),
        CommandError::Ended { .. } => ("ended", Vec::new(), None),
        _ => ("other", Vec::new(), None),
    };
    (kind, text, key, status, rules, ran)
}

/// The error of a file, which Python knows by its kind.
fn in_file(error: std::io::Error) -> PyErr {
    error.into()
}

/// The command with one more option.
fn with(command: sde::Command, name: &str, value: &Bound<'_, PyAny>) -> PyResult<sde::Command> {
    let texts = || value.extract::<Vec<String>>();
    let seconds = || {
        let seconds = value.extract::<f64>()?;
        let time = Duration::try_from_secs_f64(seconds);
        time.map_err(|_| PyValueError::new_err(format!("{name}={seconds} is no number of seconds")))
    };
    let each = |add: fn(sde::Command, String) -> sde::Command, command| {
        Ok::<_, PyErr>(texts()?.into_iter().fold(command, add))
    };
    Ok(match name {
        "name" => command.name(value.extract::<String>()?),
        "folder" => command.folder(value.extract::<PathBuf>()?),
        "scratch" => command.scratch(value.extract::<PathBuf>()?),
        "inputs" => inputs(command, value)?,
        "trees" => {
            let folders = value.extract::<Vec<PathBuf>>()?;
            folders.iter().fold(command, sde::Command::tree)
        }
        "stdin" => match value.extract::<Content>()? {
            Content::Path(path) => command.stdin(path),
            Content::Bytes(bytes) => command.stdin_bytes(bytes),
        },
        "env" => {
            let set = value.extract::<Vec<(String, Option<String>)>>()?;
            set.into_iter()
                .fold(command, |command, (name, value)| match value {
                    Some(value) => command.env(name, value),
                    None => command.env_inherited(name),
                })
        }
        "pass_env" => each(sde::Command::pass, command)?,
        "uses" => each(sde::Command::uses, command)?,
        "texts" => each(sde::Command::text, command)?,
        "program_is" => command.program_is(value.extract::<String>()?),
        "image" => command.image(value.extract::<PathBuf>()?),
        "trace" => match &*value.extract::<String>()? {
            "warn" => command.trace(Trace::Warn),
            "strict" => command.trace(Trace::Strict),
            other => {
                let why = format!("trace={other:?} can be \"warn\" or \"strict\"");
                return Err(PyValueError::new_err(why));
            }
        },
        "outputs" => each(sde::Command::output, command)?,
        "compare" => each(sde::Command::compare, command)?,
        "ok_status" => {
            let statuses = value.extract::<Vec<i32>>()?;
            statuses.into_iter().fold(command, sde::Command::ok_status)
        }
        "require" => each(|command, rule| command.require(&rule), command)?,
        "reject" => each(|command, rule| command.reject(&rule), command)?,
        "get" => {
            let gets = value.extract::<Vec<(String, String)>>()?;
            gets.iter()
                .fold(command, |command, (name, rule)| command.get(name, rule))
        }
        "timeout" => command.timeout(seconds()?),
        "grace" => command.grace(seconds()?),
        "retry" => command.retry(value.extract()?),
        "carry" => each(sde::Command::carry, command)?,
        "carry_every" => command.carry_every(seconds()?),
        "link" => command.link(),
        "echo" => command.echo(),
        "keep_failures" => command.keep_failures(),
        "again" => command.again(),
        "rehash" => command.rehash(),
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no option {name:?}"
            )));
        }
    })
}

fn inputs(command: sde::Command, value: &Bound<'_, PyAny>) -> PyResult<sde::Command> {
    let inputs = value.extract::<Vec<(Option<String>, Content)>>()?;
    let add = |command: sde::Command, input| match input {
        (Some(name), Content::Path(path)) => command.input(name, path),
        (Some(name), Content::Bytes(bytes)) => command.input_bytes(name, bytes),
        (None, Content::Path(path)) => command.input_file(path),
        (None, Content::Bytes(_)) => command,
    };
    Ok(inputs.into_iter().fold(command, add))
}

/// A run that passed; `sde.Ran` wraps it.
#[pyclass(frozen, module = "sde._sde", name = "RanCommand")]
pub(crate) struct Ran(Done);

#[pymethods]
impl Ran {
    #[getter]
    fn app(&self) -> &str {
        self.0.app()
    }

    #[getter]
    fn key(&self) -> String {
        self.0.key().to_string()
    }

    #[getter]
    fn was_computed(&self) -> bool {
        !self.0.is_remembered()
    }

    #[getter]
    fn status(&self) -> i32 {
        self.0.status()
    }

    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let how = How {
            is_writable: true,
            is_of_others: true,
        };
        let values = PyDict::new(py);
        for (name, value) in self.0.values() {
            let value: &Data = value;
            values.set_item(name, read::object(py, value, how)?)?;
        }
        Ok(values)
    }

    fn stdout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.stdout());
        Ok(PyBytes::new(py, &bytes.map_err(in_file)?))
    }

    fn stderr<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.stderr());
        Ok(PyBytes::new(py, &bytes.map_err(in_file)?))
    }

    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.0.outputs().map(str::to_owned).collect()
    }

    fn read<'py>(&self, py: Python<'py>, output: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.read(output));
        Ok(PyBytes::new(py, &bytes.map_err(in_file)?))
    }

    fn put(&self, py: Python<'_>, output: &str, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.put(output, path)).map_err(in_file)
    }

    fn put_all(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.put_all(folder)).map_err(in_file)
    }

    #[getter]
    fn unkept(&self) -> Vec<String> {
        self.0.unkept().to_vec()
    }

    #[getter]
    fn undeclared(&self) -> Vec<String> {
        self.0.undeclared().to_vec()
    }

    #[getter]
    fn left_behind(&self) -> Vec<String> {
        self.0.left_behind().to_vec()
    }

    #[getter]
    fn attempts(&self) -> Vec<String> {
        self.0.attempts().to_vec()
    }

    #[getter]
    fn is_resumed(&self) -> bool {
        self.0.is_resumed()
    }

    #[getter]
    fn unshown(&self) -> Option<&str> {
        self.0.unshown()
    }

    /// What its trace found: whether all that was read is declared, and its text.
    #[getter]
    fn traced(&self) -> Option<(bool, String)> {
        let traced = self.0.traced()?;
        Some((traced.is_clean(), traced.to_string()))
    }
}
