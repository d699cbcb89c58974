//! The runs of a store as rows: which are of one code, what they were given and returned, as cells.
//!
//! The program `sde` and the Python package show tables of these rows and columns. Other commands of `sde` use the rest:
//! which computations are listed, whose code is current, how runs of commands are judged.
//!
//! ```no_run
//! use sde_table::table::{Asked, Table};
//!
//! let read = |store: &mut _| Table::read(store, &Asked::default());
//! let (_, table) = sde_table::store::read("scan.sde".as_ref(), read)?;
//! let table = table?;
//! for (column, title) in &table.titles {
//!     let texts: Vec<String> = table.cells(*column).map(sde_table::table::shown).collect();
//!     assert_eq!(texts.len(), table.rows.all.len(), "{title}");
//! }
//! # Ok::<(), sde_table::Error>(())
//! ```

#![forbid(unsafe_code)]

mod app_name;
mod code_choice;
pub mod codes;
pub mod columns;
mod error;
pub mod failed;
pub mod find;
pub mod json;
mod judged;
pub mod listing;
mod packed;
pub mod python;
pub mod rows;
pub mod runs;
pub mod singles;
pub mod store;
pub mod table;
pub mod text;
pub mod text_table;
pub mod time;

pub use code_choice::{CodeChoice, Unseen};
pub use error::Error;
