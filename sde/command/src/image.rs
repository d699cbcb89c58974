//! A program inside an image: how `apptainer` is called.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::builder::Command;
use crate::error::CommandError;
use crate::folder::RunFolder;
use crate::program;

/// Where the run's folders are inside. No path there differs from run to run.
const WORK: &str = "/sde-run/work";
const HOME: &str = "/sde-run/home";
const TMP: &str = "/tmp";

/// What is run in place of a program.
pub(crate) struct Contained {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// Refuses what has no sense where nothing of this machine is seen.
pub(crate) fn check(command: &Command) -> Result<(), CommandError> {
    if command.image.is_none() {
        return Ok(());
    }
    let refused = |what: &str, why: &str| {
        let why =
            format!("{why}; what the program needs is in the image, or is given by -i and --tree");
        Err(CommandError::refused(format!("{what} with --image"), why))
    };
    if let Some(used) = command.uses.first() {
        let what = format!("--uses {used}");
        return refused(
            &what,
            "nothing of this machine but the run's folder is seen inside",
        );
    }
    if command.is_linked {
        return refused("--link", "links lead out of what is seen inside");
    }
    if command.program_is.is_some() {
        return refused("--program-is", "the image tells which program it is");
    }
    if command.trace.is_some() {
        return refused(
            "--trace",
            "paths inside are other files, and all that can be read counts",
        );
    }
    if command.variables.iter().any(|one| one.name == "HOME") {
        return refused("the variable HOME", "it is a folder of the run there");
    }
    Ok(())
}

/// How a program is run in `image`, which must be an absolute path.
pub(crate) fn contained(
    image: &Path,
    program: &Path,
    args: Vec<OsString>,
    environment: &[(OsString, OsString)],
    folder: &RunFolder,
) -> io::Result<Contained> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| program::find(name.as_ref(), Path::new("/"), &search).ok();
    let apptainer = find("apptainer").map(|path| (path, "APPTAINERENV_"));
    let runtime = apptainer.or_else(|| Some((find("singularity")?, "SINGULARITYENV_")));
    let (runtime, prefix) = runtime.ok_or_else(|| {
        io::Error::other("--image needs apptainer or singularity, and PATH has neither: install one, or load its module")
    })?;
    let [work, home, tmp] = [
        bound(&folder.work(), WORK)?,
        bound(&folder.home(), HOME)?,
        bound(&folder.tmp(), TMP)?,
    ];
    let words = ["exec", "--containall", "--cleanenv"].map(OsString::from);
    let pairs = [
        ("--bind", work),
        ("--bind", tmp),
        ("--home", home),
        ("--pwd", WORK.into()),
    ];
    let pairs = pairs
        .into_iter()
        .flat_map(|(flag, value)| [flag.into(), value]);
    let inside = [image.as_os_str(), program.as_os_str()].map(OsStr::to_owned);
    let whole = words.into_iter().chain(pairs).chain(inside).chain(args);
    // By these it passes variables on. Its own are those by which the run's processes are known.
    let own = [
        ("PATH", search),
        ("HOME", folder.home().into()),
        ("TMPDIR", folder.tmp().into()),
    ];
    let own = own.map(|(name, value)| (OsString::from(name), value));
    let tmpdir = !environment.iter().any(|(name, _)| name == "TMPDIR");
    let tmpdir = tmpdir.then(|| ("TMPDIR".into(), TMP.into()));
    let passed = environment
        .iter()
        .cloned()
        .chain(tmpdir)
        .map(|(name, value)| {
            let mut named = OsString::from(prefix);
            named.push(name);
            (named, value)
        });
    Ok(Contained {
        program: runtime,
        args: whole.collect(),
        environment: own.into_iter().chain(passed).collect(),
    })
}

/// A folder, and where it is inside.
fn bound(folder: &Path, inside: &str) -> io::Result<OsString> {
    let mut bound = folder.as_os_str().to_owned();
    if bound.to_string_lossy().contains([',', ':']) {
        let why = format!(
            "{} has a comma or a colon, which apptainer takes for an end: --scratch names another folder",
            folder.display()
        );
        return Err(io::Error::other(why));
    }
    bound.push(":");
    bound.push(inside);
    Ok(bound)
}
