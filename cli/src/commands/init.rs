//! `sde init`: makes a store, or shares one with a group.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sde_archives::vfs::{Disk, Vfs};
use sde_archives::{DirStore, Shared};
use serde_json::json;

use crate::failure::Failure;
use crate::output::Output;
use crate::text;
use crate::users::Names;

/// Makes a store, or shares one with a group
///
/// In a store of a group all members find what each other saved, and save there, whatever their umask is. They can remove files too, and
/// save wrong values, so name a group that you trust with your results. What would be run counts only from users that you name: `sde trust`.
///
/// A store that is there already keeps what it holds. Only the owner of a file can share it, so each member whose files are in the store
/// runs this: exit status 1 as long as there are such files.
#[derive(Args)]
pub struct Init {
    /// The directory: a store, empty, or not there yet
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Shares it with this group; without NAME, with that of the folder it is in
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true)]
    group: Option<Option<String>>,
}

impl Init {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let Some(name) = &self.group else {
            let store = DirStore::open(&self.dir)?;
            let path = store.path().display().to_string();
            return match out.json {
                true => out.object(&json!({ "store": path })),
                false => out.wrapped(format!("{path} is a store"), 2),
            };
        };
        let group = match name {
            Some(name) => Names::Groups.number(name).ok_or_else(|| {
                Failure::told(format!("no group is called {name:?}; {}", yours()))
            })?,
            None => beside(&self.dir)?,
        };
        let is_root = Disk.user() == Some(0);
        if !is_root && !Disk.groups().contains(&group) {
            let group = Names::Groups.text(group);
            return Err(Failure::told(format!(
                "you are not in the group {group}; {}",
                yours()
            )));
        }
        let shared = DirStore::share_with_group(&self.dir, group)?;
        let closed = closed_to(group, &self.dir)?;
        out.found |= !shared.of_others.is_empty() || !shared.linked.is_empty() || closed.is_some();
        self.print(&shared, group, closed, out)
    }

    fn print(
        &self,
        shared: &Shared,
        group: u32,
        closed: Option<(PathBuf, &str)>,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let dir = self.dir.display();
        if out.json {
            let of_others: Vec<_> = shared.of_others.iter().collect();
            let of_others = of_others.into_iter().map(|(user, files)| {
                json!({ "user": user, "name": Names::Users.name(*user), "files": files })
            });
            return out.object(&json!({
                "store": dir.to_string(),
                "group": group,
                "changed": shared.changed,
                "of_others": of_others.collect::<Vec<_>>(),
                "linked": shared.linked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
                "closed": closed.map(|(above, _)| above.display().to_string()),
            }));
        }
        let files = text::count(shared.changed, "file or folder", "files and folders");
        let group = Names::Groups.text(group);
        out.wrapped(
            format!("{dir} is shared with the group {group}; {files} changed"),
            2,
        )?;
        if let Some((above, right)) = closed {
            let above = above.display();
            let why = "they can't reach it: they may not enter";
            out.wrapped(format!("{why} {above}; `chmod {right}` on it lets them"), 2)?;
        }
        for (user, files) in &shared.of_others {
            let files = text::count(*files, "file or folder is", "files and folders are");
            let user = Names::Users.text(*user);
            out.wrapped(
                format!("{files} still closed to it: {user} has to run `sde init --group {dir}`"),
                2,
            )?;
        }
        for path in &shared.linked {
            let path = path.display();
            let why = "is still closed to it: copy it, it has another name";
            let next = "put the copy in its place, and run this again";
            out.wrapped(format!("{path} {why}; {next}"), 2)?;
        }
        Ok(())
    }
}

/// The group of a store that is shared, or else of the folder that it is in.
fn beside(dir: &Path) -> Result<u32, Failure> {
    let dir = std::path::absolute(dir)?;
    let of = |dir: &Path| Disk.look(dir).ok().flatten()?.owner;
    let group = match of(&dir).and_then(|owner| owner.shared_with()) {
        Some(group) => Some(group),
        None => dir
            .ancestors()
            .skip(1)
            .find_map(of)
            .map(|owner| owner.group),
    };
    let is_mine = |group: &u32| Disk.groups().contains(group);
    group.filter(is_mine).ok_or_else(|| {
        Failure::told(format!(
            "which group? That of the folder is none of yours; {}",
            yours()
        ))
    })
}

/// A folder above that members of the group can't enter, and the right that they lack.
fn closed_to(group: u32, dir: &Path) -> Result<Option<(PathBuf, &'static str)>, Failure> {
    let dir = std::path::absolute(dir)?;
    let closed = |above: &Path| {
        let owner = Disk.look(above).ok().flatten()?.owner?;
        let (right, bit) = match owner.group == group {
            true => ("g+x", 0o010),
            false => ("o+x", 0o001),
        };
        (owner.mode & bit == 0).then(|| (above.to_owned(), right))
    };
    Ok(dir.ancestors().skip(1).find_map(closed))
}

/// The groups that the user can name.
fn yours() -> String {
    let mut groups = Disk.groups();
    groups.sort_unstable();
    groups.dedup();
    let names: Vec<String> = groups
        .into_iter()
        .map(|group| Names::Groups.text(group))
        .collect();
    format!("you are in {}: --group=NAME", names.join(", "))
}
