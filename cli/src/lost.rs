//! What the manifests vouch for and is not there.

use sde_archives::inspect::{Damage, Manifests, SegmentFile, SegmentId};

/// What was there when a generation was made and is lost, with a text of which. `end` says up to where a segment can be
/// read. Nothing is certain to be lost unless [all generations](is_certain) can be read.
pub fn lost(
    manifests: &Manifests,
    segments: &[SegmentFile],
    end: impl Fn(&SegmentFile) -> u64,
) -> Vec<(Damage, String)> {
    let mut lost: Vec<(Damage, String)> = Vec::new();
    let mut told = Vec::new();
    for (file, info) in manifests.heads() {
        for listed in &info.segments {
            let there = segments.iter().find(|one| one.id().ok() == listed.id);
            let (path, end, why) = match there {
                Some(one) if manifests.replaced(one) > 0 => continue,
                Some(one) => {
                    let why = "lost: it was there when the generation was made";
                    (one.path(), end(one), why)
                }
                None if is_replaced(manifests, listed.id) => continue,
                None if is_of_other_format(segments, &listed.path) => continue,
                None => {
                    let why = "the segment is lost, or its header is damaged";
                    (&*listed.path, 0, why)
                }
            };
            if end < listed.length && !told.contains(&listed.id) {
                told.push(listed.id);
                let of = format!("vouched for by {}", file.name);
                lost.push((Damage::new(path, end..listed.length, why), of));
            }
        }
    }
    lost
}

/// Whether none is of a later release: what is gone may have been replaced in that.
pub fn is_certain(manifests: &Manifests) -> bool {
    let mut files = manifests.files.iter();
    files.all(|one| one.other_format.is_none())
}

/// The manifests that are damaged.
pub fn damaged_manifests(manifests: &Manifests) -> Vec<Damage> {
    let files = manifests.files.iter();
    let damaged = files.filter_map(|file| match (&file.content, file.other_format) {
        (Err(why), None) => Some(Damage::new(format!("manifests/{}", file.name), 0..0, why)),
        _ => None,
    });
    damaged.collect()
}

fn is_of_other_format(segments: &[SegmentFile], path: &str) -> bool {
    let mut segments = segments.iter();
    segments.any(|one| one.path() == path && one.other_format().is_some())
}

fn is_replaced(manifests: &Manifests, id: Option<SegmentId>) -> bool {
    let mut replaced = manifests.heads().flat_map(|(_, info)| &info.replaced);
    replaced.any(|one| one.id == id)
}
