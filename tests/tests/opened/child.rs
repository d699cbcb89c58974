//! This test program, run again to do one job.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

const JOB: &str = "SDE_TEST_JOB";
const STORE: &str = "SDE_TEST_STORE";

/// A process at a job. It is killed if it is still there when this is dropped.
pub struct Program {
    child: Child,
    out: BufReader<Box<dyn Read>>,
}

impl Program {
    pub fn start(job: &str, store: &Path) -> Self {
        let mut command = Command::new("env");
        // Who runs the tests may ignore signals: a shell in the background does, and `nohup`.
        command.arg("--default-signal=INT,TERM,HUP");
        command.arg(std::env::current_exe().unwrap());
        Self::by(command, job, store)
    }

    /// Starts the job by a command to which the arguments of this program are added.
    pub fn by(mut command: Command, job: &str, store: &Path) -> Self {
        command.args(["--exact", "child::job", "--nocapture", "--test-threads=1"]);
        Self::script(command, job, store)
    }

    /// Starts the job by a command that has them.
    pub fn script(mut command: Command, job: &str, store: &Path) -> Self {
        let mut child = command
            .env(JOB, job)
            .env(STORE, store)
            .env_remove("CI")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out: Box<dyn Read> = Box::new(child.stdout.take().unwrap());
        Self {
            child,
            out: BufReader::new(out),
        }
    }

    /// Waits until it told this.
    pub fn told(&mut self, what: &str) {
        let mut line = String::new();
        while line.trim_end() != format!("> {what}") {
            line.clear();
            let got = self.out.read_line(&mut line).unwrap();
            assert_ne!(got, 0, "no \"{what}\" came");
        }
    }

    /// Waits until this is on its standard error; gives all until then.
    pub fn showed(&mut self, what: &str) -> String {
        let error = self.child.stderr.as_mut().unwrap();
        let mut all = Vec::new();
        while !String::from_utf8_lossy(&all).contains(what) {
            let mut byte = [0];
            let got = error.read(&mut byte).unwrap();
            assert_eq!(got, 1, "{}", String::from_utf8_lossy(&all));
            all.push(byte[0]);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(sent.unwrap().success());
    }

    /// Lets it go on from `wait`, for the last time.
    pub fn go_on(&mut self) {
        self.says("");
        self.child.stdin.take();
    }

    /// Lets it go on from `wait`, which gives this.
    pub fn says(&mut self, what: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; gives how it ended, and what else was on its standard streams.
    pub fn ended(mut self) -> (ExitStatus, String, String) {
        let (mut out, mut error) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut error)
            .unwrap();
        (self.child.wait().unwrap(), out, error)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells the parent.
pub fn tell(what: &str) {
    // The test harness does not end its own lines.
    println!("\n> {what}");
    std::io::stdout().flush().unwrap();
}

/// Waits until the parent lets it go on; gives what it said.
pub fn wait() -> String {
    let mut said = String::new();
    std::io::stdin().read_line(&mut said).unwrap();
    said
}

/// What these processes do; as a test of its own it has nothing to do.
#[test]
fn job() {
    let Some(job) = std::env::var_os(JOB) else {
        return;
    };
    let store = std::env::var_os(STORE).unwrap();
    let store = Path::new(&store);
    match job.to_str().unwrap() {
        "waits" => super::ends::waits(store),
        "waits without signals" => super::ends::waits_without_signals(store),
        "handles" => super::ends::handles(store),
        "hangs" => super::ends::hangs(),
        "saves and waits" => super::ends::saves_and_waits(store),
        "warns" => super::shows::warns(store, false, false),
        "warns quietly" => super::shows::warns(store, true, false),
        "warns a subscriber" => super::shows::warns(store, false, true),
        "holds standard error" => super::ends::holds_standard_error(store),
        "fails to save" => super::shows::fails_to_save(store),
        "sweeps 200 points" => super::shared::sweeps(store, 200),
        "sweeps 640 points" => super::shared::sweeps(store, 640),
        "scans 200 points" => super::shared::scans(store),
        "calls" => super::shared::calls(store),
        "pings" => super::shared::goes_round(store, true),
        "pongs" => super::shared::goes_round(store, false),
        "solves on ranks" => super::ranks_end::solves(store, false),
        "solves on ranks of which one waits" => super::ranks_end::solves(store, true),
        "progresses" => super::shows::progresses(store),
        other => panic!("no such job: {other}"),
    }
}
