//! One call: its arguments on the way to the body, and the way between the engine's thread and Python's main thread.
//!
//! Python delivers signals to its main thread only, while that runs Python code. So the main thread does not wait inside
//! the engine: another thread makes the run, and the main one does what that asks for, and looks for signals.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sde::{AppError, CancelToken, Data, Handle, Inputs, ResultMap};

use crate::signals::blocked;
use crate::{KeyingError, Unkept, current, store, write};

/// How often the main thread looks for signals.
const SIGNALS: Duration = Duration::from_millis(50);

thread_local! {
    /// The calls whose runs are on this thread's stack, the innermost last.
    static CALLS: RefCell<Vec<Arc<Call>>> = const { RefCell::new(Vec::new()) };
}

/// What a body needs of its call, beside its inputs.
pub(crate) struct Call {
    pub(crate) function: Py<PyAny>,
    pub(crate) arguments: Py<PyTuple>,
    pub(crate) named: Option<Py<PyDict>>,
    pub(crate) opened: u64,
    /// What the function raised, for its caller.
    pub(crate) raised: Mutex<Option<PyErr>>,
    /// Gives the call up.
    pub(crate) token: CancelToken,
    /// Where bodies are sent, if the call was made on Python's main thread.
    pub(crate) to_main: Option<Sender<Message>>,
    /// How often this process had been forked off when the call was made.
    pub(crate) forks: u64,
}

/// What the thread that makes a run sends to the main thread.
pub(crate) enum Message {
    /// A body, whose result it waits for.
    Body {
        call: Arc<Call>,
        handle: Handle,
        done: Sender<Result<ResultMap, AppError>>,
    },
    /// The run has ended.
    Ended,
}

/// Tells the main thread that the run has ended, also when it panicked.
struct Ended(Sender<Message>);

impl Drop for Ended {
    fn drop(&mut self) {
        _ = self.0.send(Message::Ended);
    }
}

/// The body of every app of this package: it runs the function of the call on this thread.
pub(crate) fn body(handle: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
    let call = CALLS.with_borrow(|calls| calls.last().cloned());
    let Some(call) = call else {
        return Err(AppError::message(
            "the function was called from outside of Python",
        ));
    };
    let Some(to_main) = &call.to_main else {
        return attached(|py| call.run(py, handle.clone()));
    };
    let (done, result) = channel();
    let (handle, gone) = (handle.clone(), "Python's main thread has gone");
    let body = Message::Body {
        call: Arc::clone(&call),
        handle,
        done,
    };
    to_main.send(body).map_err(|_| AppError::message(gone))?;
    result.recv().map_err(|_| AppError::message(gone))?
}

/// Runs Python code, unless Python is ending: a daemon thread may be in a run then.
fn attached<R>(run: impl FnOnce(Python<'_>) -> Result<R, AppError>) -> Result<R, AppError> {
    Python::try_attach(run).unwrap_or_else(|| Err(AppError::message("Python is ending")))
}

/// Keeps a daemon thread where it is once Python has ended. Python up to 3.13 ends such a thread when it next takes the
/// lock, by an unwinding that Rust can't go through; the process ends without it.
pub(crate) struct Stay(());

impl Stay {
    /// Runs something from which Python may unwind the thread.
    pub(crate) fn within<R>(run: impl FnOnce() -> R) -> R {
        let stay = Self(());
        let result = run();
        std::mem::forget(stay);
        result
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}

/// Gives up calls that were made with it.
#[pyclass(frozen, module = "sde._sde")]
pub(crate) struct Cancel {
    pub(crate) token: CancelToken,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self {
            token: CancelToken::new(),
        }
    }

    /// Ends the waits of these calls. A function that is running runs on.
    fn cancel(&self) {
        self.token.cancel();
    }
}

impl Call {
    fn run(&self, py: Python<'_>, handle: Handle) -> Result<ResultMap, AppError> {
        let result = current::within(py, handle, self.opened, || {
            let (arguments, named) = (self.arguments.bind(py), &self.named);
            let named = named.as_ref().map(|named| named.bind(py));
            let returned = Stay::within(|| self.function.bind(py).call(arguments, named))?;
            if self.is_in_child() {
                let why = ": the function forked this process off, and returned in it";
                return Err(Unkept::new_err((returned.unbind(), why)));
            }
            write::data(&returned, write::Purpose::Result).map_err(|error| {
                match error.is_instance_of::<KeyingError>(py) {
                    true => Unkept::new_err((returned.unbind(), error.value(py).to_string())),
                    false => error,
                }
            })
        });
        match result.and_then(|result| result) {
            Ok(Data::Shared(value)) => Ok(ResultMap::new().with_value("result", value)),
            Ok(data) => Ok(ResultMap::new().with("result", data)),
            Err(raised) => Err(self.failure(py, raised)),
        }
    }

    /// Whether the function forked, and this is the child: the engine and its threads are the parent's.
    fn is_in_child(&self) -> bool {
        self.forks != store::forks()
    }

    /// What the function raised.
    pub(crate) fn taken(&self) -> Option<PyErr> {
        self.raised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Keeps what the function raised for its caller, and gives the engine its text. The next call runs the function
    /// again: in a notebook its user has mended something meanwhile. `KeyboardInterrupt`, and all else that is no
    /// `Exception`, gives the call up: other threads that wait for it make it themselves.
    fn failure(&self, py: Python<'_>, raised: PyErr) -> AppError {
        if !raised.is_instance_of::<PyException>(py) {
            self.token.cancel();
        }
        let error = AppError::message(raised.to_string()).transient();
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
        error
    }
}

/// Makes a run, during which the body finds this call.
pub(crate) fn with_call<R>(call: Arc<Call>, run: impl FnOnce() -> R) -> R {
    /// Takes the call back, also when a panic goes through.
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            CALLS.with_borrow_mut(|calls| _ = calls.pop());
        }
    }
    CALLS.with_borrow_mut(|calls| calls.push(call));
    let _pop = Pop;
    run()
}

pub(crate) fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let here = threading.call_method0("current_thread")?;
    Ok(here.is(&threading.call_method0("main_thread")?))
}

/// Makes a run on another thread. This one, which is Python's main thread, runs the bodies that it sends, and looks for
/// signals: `interrupt` is told the number of those before each whose handler raises, and the first is raised at the end.
pub(crate) fn on_main<R: Send + 'static>(
    py: Python<'_>,
    (to_main, bodies): (Sender<Message>, Receiver<Message>),
    run: impl FnOnce() -> R + Send + 'static,
    interrupt: impl Fn(usize) + Send,
) -> PyResult<R> {
    let forks = store::forks();
    let ended = Ended(to_main);
    let running = move || {
        let _ended = ended;
        run()
    };
    let running = blocked(|| thread::Builder::new().spawn(running)).map_err(|error| {
        crate::Error::new_err(format!(
            "no thread could be started for a call ({error}); the limit of threads may be reached"
        ))
    })?;
    let (made, raised) = py.detach(move || {
        let raised = serve(&bodies, interrupt);
        if forks != store::forks() {
            // This is a child, in which there is no thread to wait for.
            std::mem::forget(running);
            return (None, raised);
        }
        (running.join().ok(), raised)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    // What runs next may be a callback of a weak reference or a `__del__`, which would swallow a Ctrl-C.
    py.check_signals()?;
    made.ok_or_else(|| crate::Error::new_err("the call panicked; this is a fault of SDE"))
}

/// Runs the bodies that are sent, until the run has ended; gives what a handler of a signal raised first. In a process
/// that a body forked off it gives what that raised.
fn serve(bodies: &Receiver<Message>, interrupt: impl Fn(usize)) -> Option<PyErr> {
    let (mut first, mut count) = (None, 0);
    loop {
        match bodies.recv_timeout(SIGNALS) {
            Ok(Message::Body { call, handle, done }) => {
                let made = attached(|py| call.run(py, handle));
                if call.is_in_child() {
                    return call.taken();
                }
                _ = done.send(made);
            }
            Err(RecvTimeoutError::Timeout) => {
                let checked = Python::try_attach(|py| py.check_signals());
                if let Some(Err(raised)) = checked {
                    interrupt(count);
                    count += 1;
                    first.get_or_insert(raised);
                }
            }
            Ok(Message::Ended) | Err(RecvTimeoutError::Disconnected) => return first,
        }
    }
}
