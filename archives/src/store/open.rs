//! Opens an engine with a store, in one line.

use std::path::Path;

use sde::{Builder, Error, Sde};

use crate::store::options::StoreOptions;

/// An engine with the store in this directory, which is made if it does not exist.
///
/// Processes that open one directory at the same time [share the work](sde::SharedWork).
///
/// Results are saved in the background every few seconds, when the process is told to end (Ctrl-C, SIGTERM, SIGHUP;
/// SIGUSR1 saves without ending it) and when the last `Sde` is dropped. So the next run of the program goes on from
/// there, however this one ends. Warnings and the progress of long work go to standard error. [`builder`] allows
/// changes to these defaults.
///
/// ```
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x * x * x
/// }
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("cubes.sde");
/// let sde = sde_archives::open(&path)?;
/// let cubes = cube.par_call(&sde, [1.0, 2.0, 3.0])?;
/// assert_eq!(*cubes[2], 27.0);
/// # drop(sde);
/// # let sde = sde_archives::open(&path)?;
/// # cube.call(&sde, 2.0)?;
/// # assert_eq!(sde.stats().total.computed, 0);
/// # Ok::<(), sde::Error>(())
/// ```
///
/// # Errors
/// If the directory holds something else, can't be made, read or written; if no thread can be started to save.
pub fn open(dir: impl AsRef<Path>) -> Result<Sde, Error> {
    builder(dir)?.build()
}

/// The builder that [`open`] uses.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("quiet.sde");
/// let sde = sde_archives::builder(&path)?.quiet().without_signals().threads(2).build()?;
/// # Ok::<(), sde::Error>(())
/// ```
///
/// # Errors
/// If the store can't be opened.
pub fn builder(dir: impl AsRef<Path>) -> Result<Builder, Error> {
    StoreOptions::new().builder(dir)
}

impl StoreOptions {
    /// The builder that [`open`] uses, with these options. The stores that `SDE_ALSO` names are looked in
    /// [too](Self::also), after those named here, unless [nothing](Self::without_environment) of the environment
    /// counts.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (path, theirs) = (folder.path().join("mine"), folder.path().join("theirs"));
    /// # sde_archives::DirStore::open(&theirs)?;
    /// let options = sde_archives::StoreOptions::new().also(&theirs);
    /// let sde = options.builder(&path)?.quiet().build()?;
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the store can't be opened.
    pub fn builder(self, dir: impl AsRef<Path>) -> Result<Builder, Error> {
        // The builder comes first, so that warnings of opening are shown too.
        let builder = Builder::for_program();
        let options = match self.environment {
            true => self.also_from_env(),
            false => self,
        };
        Ok(builder.store(options.open(dir)?))
    }
}
