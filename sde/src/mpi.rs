//! Process groups on MPI, and the engine of a job in a line.
//!
#![cfg_attr(feature = "store", doc = "```no_run")]
#![cfg_attr(not(feature = "store"), doc = "```ignore")]
//! /// The mean of the orbit of x -> r x (1 - x).
//! #[sde::app]
//! fn orbit_mean(r: f64) -> f64 {
//!     let orbit = std::iter::successors(Some(0.4), |x| Some(r * x * (1.0 - x)));
//!     orbit.take(1_000_000).sum::<f64>() / 1e6
//! }
//!
//! fn main() -> Result<(), sde::Error> {
//!     let sde = sde::mpi::open("orbits.sde")?; // first thing in `main`
//!     // Dealt out to all ranks; each gets all values.
//!     let means = orbit_mean.par_call(&sde, [3.5, 3.6, 3.7, 3.8])?;
//!     if sde.rank()? == 0 {
//!         println!("{:.4}", means.iter().map(|mean| **mean).sum::<f64>());
//!     }
//!     sde.finish()
//! }
//! ```

#[doc(inline)]
pub use sde_mpi::*;

#[cfg(feature = "store")]
pub use job::{Job, JobBuilder, builder, open};

#[cfg(feature = "store")]
mod job {
    use std::ops::Deref;
    use std::path::Path;

    use sde_archives::{Cbor, StoreOptions};
    use sde_engine::{Builder, Error, Sde};
    use sde_mpi::Session;

    /// Starts MPI, and opens the store in this directory for all ranks together.
    ///
    /// The engine has the defaults of [`sde::open`](crate::open), and runs on all ranks of the job. Collective. Call it
    /// first thing in `main`, and keep the [`Job`] there. [`builder`] allows changes to the defaults; a program without
    /// a store starts a [`Session`].
    ///
    /// # Errors
    /// If MPI can't be started; as [`StoreOptions::open_together`]; if no thread can be started to save.
    pub fn open(dir: impl AsRef<Path>) -> Result<Job, Error> {
        builder(dir)?.build()
    }

    /// Gives the builder that [`open`] uses. It has started MPI and opened the store.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("job.sde");
    /// let sde = sde::mpi::builder(&path)?
    ///     .with(|builder| builder.quiet().threads(2))
    ///     .build()?;
    /// sde.finish()?;
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// If MPI can't be started; as [`StoreOptions::open_together`].
    pub fn builder(dir: impl AsRef<Path>) -> Result<JobBuilder, Error> {
        let session = Session::start()?;
        let world = session.world();
        let builder = Builder::for_program();
        let builder = builder.store(StoreOptions::new().open_together(dir, &world)?);
        Ok(JobBuilder {
            builder: builder.process_group(world, Cbor),
            session,
        })
    }

    /// Configures the engine of a job; made by [`builder`].
    #[must_use = "a builder does nothing until it builds"]
    #[derive(Debug)]
    pub struct JobBuilder {
        // Dropped in this order.
        builder: Builder,
        session: Session,
    }

    impl JobBuilder {
        /// Changes the builder of the engine.
        pub fn with(mut self, change: impl FnOnce(Builder) -> Builder) -> Self {
            self.builder = change(self.builder);
            self
        }

        /// Builds the engine.
        ///
        /// # Errors
        /// As [`Builder::build`].
        pub fn build(self) -> Result<Job, Error> {
            Ok(Job {
                sde: self.builder.build()?,
                session: self.session,
            })
        }
    }

    /// An engine on all ranks of a job, with the MPI session that it rests on; made by [`open`].
    ///
    /// It dereferences to the [`Sde`]. Dropping it drops that first, and then ends the session, which
    /// [waits for the other ranks](Session#how-a-job-ends).
    pub struct Job {
        // Dropped in this order.
        sde: Sde,
        session: Session,
    }

    impl Job {
        /// Saves what is new, as [`Sde::finish`] does, and ends the job on this rank: the last call of the program. Collective.
        ///
        /// # Errors
        /// As [`Sde::finish`].
        pub fn finish(self) -> Result<(), Error> {
            self.sde.finish()
        }

        /// The MPI session.
        #[must_use]
        pub fn session(&self) -> &Session {
            &self.session
        }
    }

    impl Deref for Job {
        type Target = Sde;

        fn deref(&self) -> &Sde {
            &self.sde
        }
    }

    impl std::fmt::Debug for Job {
        fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            to.debug_tuple("Job").finish()
        }
    }
}
