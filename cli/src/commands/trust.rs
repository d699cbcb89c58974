//! `sde trust`: the users whose code this user runs.

use clap::Args;
use sde_archives::trusted;
use serde_json::json;

use crate::failure::Failure;
use crate::output::Output;
use crate::users::Names;

/// Shows or changes whose code you run
///
/// In a store of a group, what would be run (the binaries of kernels) counts only if you have saved it, or a user that you name here. Such
/// a user can do all that you can. The list is in your own ~/.config/sde/trusted.
#[derive(Args)]
pub struct Trust {
    /// Users to add, by name or number; without any, the list is shown
    #[arg(value_name = "USER")]
    users: Vec<String>,
    /// Takes these users off the list
    #[arg(long, requires = "users")]
    remove: bool,
}

impl Trust {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let named = self.users.iter().map(|name| {
            let number = Names::Users.number(name);
            number.ok_or_else(|| Failure::told(format!("no user is called {name:?}")))
        });
        let named = named.collect::<Result<Vec<u32>, _>>()?;
        let mut users = trusted::users()?;
        if !named.is_empty() {
            users.retain(|user| !named.contains(user));
            if !self.remove {
                users.extend(named);
            }
            users.sort_unstable();
            users.dedup();
            trusted::set_users(&users)?;
        }
        if users.is_empty() && !out.json {
            return out.line("only what you have saved yourself is run");
        }
        users.into_iter().try_for_each(|user| match out.json {
            true => out.object(&json!({ "user": user, "name": Names::Users.name(user) })),
            false => out.line(Names::Users.text(user)),
        })
    }
}
