//! Process sets, with threads that stand for ranks. The tests are those of `sde_tests::ranks`, which
//! `sde/mpi` runs under MPI; here are besides those of what is only within one process.

mod alone;
mod counting;
mod dealing;
mod evicting;
mod held;
mod late;
mod splitting;

/// A test for each, by its name.
macro_rules! on_threads {
    ($($module:ident { $($name:ident: $kind:ident($sizes:expr),)* })*) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                sde_tests::ranks::on_threads(concat!(
                    stringify!($module),
                    "::",
                    stringify!($name)
                ));
            })*
        })*
    };
}

sde_tests::for_each_test_of_ranks!(on_threads);
