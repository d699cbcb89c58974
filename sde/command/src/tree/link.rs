//! Whether a link stays in a folder.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The kernel follows so many links.
const MOST_LINKS: usize = 40;

/// Whether a link with this text in the folder `from` is resolved without a step out of the folder `top`, not even one that
/// comes back: only then does a copy of `top` hold a link that means the copy. Neither path has links in it.
pub(super) fn stays(top: &Path, from: &Path, text: &Path) -> io::Result<bool> {
    let mut at = from.to_owned();
    let mut left = steps(text);
    let mut links = 0;
    while let Some(step) = left.pop() {
        let next = match Path::new(&step).components().next() {
            Some(Component::Normal(name)) => at.join(name),
            Some(Component::ParentDir) if at != top => {
                at.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            // The root of all, or a step above `top`.
            Some(_) => return Ok(false),
        };
        if !next.symlink_metadata()?.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Ok(false);
        }
        left.extend(steps(&next.read_link()?));
    }
    Ok(true)
}

/// The components of a path, the last one first.
fn steps(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .map(|step| PathBuf::from(step.as_os_str()))
        .collect()
}
